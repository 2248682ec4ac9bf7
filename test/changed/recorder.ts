/** What the sources with recording call; made by `record.ts` in each test process. */
export const RECORDER = '__functionRecorder';

/** Which parts of which file ran. */
export type Ran = Record<string, number[]>;

export interface Recorded {
  /** While the test file ran. */
  ran: Ran;
  /** While a file was loaded, by that file. */
  loading: Record<string, Ran>;
  /** The files that were loaded. */
  loaded: string[];
}

/** Collects which functions run, apart for the time in which a file of ours is loaded. */
export class Recorder {
  private readonly marks = new Map<string, Uint8Array>();
  private readonly ran = new Map<string, Set<number>>();
  private readonly loading = new Map<string, Map<string, Set<number>>>();

  /** Called where a file begins to run. Whatever runs is marked in the answer. */
  enter(file: string, parts: number): Uint8Array {
    this.take(this.ran);
    const marks = this.marks.get(file) ?? new Uint8Array(parts);
    this.marks.set(file, marks);
    return marks;
  }

  /** Called where a file has been loaded. */
  leave(file: string): void {
    const during = this.loading.get(file) ?? new Map<string, Set<number>>();
    this.loading.set(file, during);
    this.take(during);
  }

  recorded(): Recorded {
    this.take(this.ran);
    const loading = [...this.loading].filter(([, during]) => during.size > 0);
    return {
      ran: listed(this.ran),
      loading: Object.fromEntries(loading.map(([file, during]) => [file, listed(during)])),
      loaded: [...this.marks.keys()],
    };
  }

  /** Moves what has been marked to `to`. */
  private take(to: Map<string, Set<number>>): void {
    for (const [file, marks] of this.marks) {
      for (let part = marks.indexOf(1); part !== -1; part = marks.indexOf(1, part + 1)) {
        const parts = to.get(file) ?? new Set();
        to.set(file, parts.add(part));
      }
      marks.fill(0);
    }
  }
}

function listed(ran: ReadonlyMap<string, ReadonlySet<number>>): Ran {
  return Object.fromEntries([...ran].map(([file, parts]) => [file, [...parts]]));
}
