/** Hellos in one turn of the event loop. Others wait, and requests of the API are answered in between. */
const PER_TURN = 8;
/** An agent gives up on its welcome after 15 seconds; many more than this would not be answered by then. */
const MOST_WAITING = 8_192;
/** Of 4 KiB each: 64 MiB in all. */
const MOST_UNITS = 16_384;

interface Waiting {
  run: () => void;
  units: number;
}

/**
 * Spreads the hellos of hosts that connect at once over turns of the event loop. The first ones of a turn run at once, the others wait
 * in order. What waits is bounded in number and in size.
 */
export class HelloQueue {
  private readonly waiting: Waiting[] = [];
  private units = 0;
  private left = PER_TURN;
  private isDeferred = false;

  /** `defer` runs a function in the next turn. */
  constructor(private readonly defer: (run: () => void) => void = (run) => void setImmediate(run)) {}

  /** Runs a hello now or in a later turn. Returns false if too many are waiting already; then it never runs. */
  add(run: () => void, units: number): boolean {
    if (this.waiting.length === 0 && this.left > 0) {
      this.take(run);
      return true;
    }
    if (this.waiting.length >= MOST_WAITING || this.units + units > MOST_UNITS) return false;
    this.waiting.push({ run, units });
    this.units += units;
    return true;
  }

  private take(run: () => void): void {
    this.left--;
    if (!this.isDeferred) {
      this.isDeferred = true;
      this.defer(() => this.nextTurn());
    }
    run();
  }

  private nextTurn(): void {
    this.isDeferred = false;
    this.left = PER_TURN;
    for (const { run, units } of this.waiting.splice(0, PER_TURN)) {
      this.units -= units;
      this.take(run);
    }
  }
}
