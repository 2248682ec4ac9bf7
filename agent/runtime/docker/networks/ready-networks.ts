import { randomUUID } from 'node:crypto';
import type { Clock, Timer } from '../../../../shared/clock.js';

const PREFIX = 'gpurent-ready-';
/** After one was taken: by then, what it was taken for has started, and Docker has time. */
const FILL_MS = 1_000;

/** Tells whether a network was made in advance. */
export function isMadeAhead(network: string): boolean {
  return network.startsWith(PREFIX);
}

/** Keeps a few networks ready, because Docker takes long to make one. Each is given to one instance, once. */
export class ReadyNetworks {
  private readonly names: string[] = [];
  private filling: Promise<void> | undefined;
  private timer: Timer | undefined;
  private isOpen = false;

  constructor(
    private readonly most: number,
    private readonly clock: Clock,
    private readonly make: (name: string) => Promise<unknown>,
  ) {}

  /** Begins to keep networks ready. Resolves once they are, or one could not be made. */
  open(): Promise<void> {
    this.isOpen = true;
    return this.fill();
  }

  /** Keeps no more of them ready. Returns those that nobody has taken. */
  async close(): Promise<string[]> {
    this.isOpen = false;
    this.timer?.cancel();
    await this.filling;
    return this.names.splice(0);
  }

  /** Takes one for an instance. Skips those that are not among the `present` ones, because somebody has removed them. */
  take(present: ReadonlySet<string>): string | undefined {
    if (!this.isOpen) return undefined;
    this.timer?.cancel();
    this.timer = this.clock.schedule(FILL_MS, () => void this.fill());
    for (;;) {
      const name = this.names.shift();
      if (name === undefined || present.has(name)) return name;
    }
  }

  private fill(): Promise<void> {
    // Nobody waits for these networks: where one cannot be made, the next deploy tries again, or makes its own and says why it cannot.
    this.filling ??= this.makeMissing()
      .catch(() => undefined)
      .finally(() => (this.filling = undefined));
    return this.filling;
  }

  private async makeMissing(): Promise<void> {
    while (this.isOpen && this.names.length < this.most) {
      const name = PREFIX + randomUUID();
      await this.make(name);
      this.names.push(name);
    }
  }
}
