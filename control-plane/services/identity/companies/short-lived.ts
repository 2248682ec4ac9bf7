import type { Clock } from '../../../../shared/clock.js';

/** Whose a value is: strangers make them, so each network can have only some. */
interface Owned {
  network: string;
  /** A secret of the browser for which the value is. */
  browser: string;
}

interface Entry<Value> {
  value: Value;
  endsAt: number;
}

export const MOST_SHORT_LIVED = 10_000;
export const MOST_OF_A_NETWORK = 100;

/**
 * Values that a browser comes back for within `ms`. They are kept in memory: after a restart, people begin again. At most
 * {@link MOST_SHORT_LIVED} are kept, and {@link MOST_OF_A_NETWORK} of a network; one more takes the place of the oldest.
 */
export class ShortLived<Value extends Owned> {
  /** In the order in which they end. */
  private readonly entries = new Map<string, Entry<Value>>();
  /** The keys of each network, the oldest first. */
  private readonly ofNetworks = new Map<string, Set<string>>();

  constructor(
    private readonly clock: Pick<Clock, 'monotonic'>,
    private readonly ms: number,
  ) {}

  get size(): number {
    return this.entries.size;
  }

  put(key: string, value: Value): void {
    this.makeRoom(value.network);
    this.entries.set(key, { value, endsAt: this.clock.monotonic() + this.ms });
    const keys = this.ofNetworks.get(value.network) ?? new Set();
    this.ofNetworks.set(value.network, keys.add(key));
  }

  /** Returns the value of a key, if it has not ended and is for this browser. */
  get(key: string, browser: string | undefined): Value | undefined {
    const entry = this.entries.get(key);
    if (!entry || entry.endsAt <= this.clock.monotonic() || entry.value.browser !== browser) return undefined;
    return entry.value;
  }

  /** Returns the value like {@link get}, and removes it: it is used once. */
  take(key: string, browser: string | undefined): Value | undefined {
    const value = this.get(key, browser);
    if (value) this.remove(key);
    return value;
  }

  private makeRoom(network: string): void {
    for (const [key, { endsAt }] of this.entries) {
      if (endsAt > this.clock.monotonic() && this.entries.size < MOST_SHORT_LIVED) break;
      this.remove(key);
    }
    const keys = this.ofNetworks.get(network);
    const [oldest] = keys ?? [];
    if (keys && keys.size >= MOST_OF_A_NETWORK && oldest !== undefined) this.remove(oldest);
  }

  private remove(key: string): void {
    const network = this.entries.get(key)?.value.network;
    this.entries.delete(key);
    if (network === undefined) return;
    const keys = this.ofNetworks.get(network);
    keys?.delete(key);
    if (keys?.size === 0) this.ofNetworks.delete(network);
  }
}
