import type { Ids } from '../../shared/ids.js';

/** Numbers that a seed repeats bit for bit (sfc32). */
export class Random {
  private a: number;
  private b = 0x9e3779b9;
  private c = 0x243f6a88;
  private d = 1;

  constructor(seed: number) {
    this.a = seed | 0;
    for (let round = 0; round < 12; round++) this.next();
  }

  /** In [0, 1). */
  fraction(): number {
    return (this.next() >>> 0) / 2 ** 32;
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.fraction() * (max - min + 1));
  }

  pick<T>(from: readonly T[]): T | undefined {
    return from[Math.floor(this.fraction() * from.length)];
  }

  /** One of the entries, as likely as its weight. */
  weighted<T>(entries: readonly (readonly [number, T])[]): T {
    let left = this.fraction() * entries.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, value] of entries) {
      left -= weight;
      if (left < 0) return value;
    }
    throw new Error('there is nothing to choose from');
  }

  ids(): Ids {
    const hex = (bytes: number) =>
      Array.from({ length: bytes }, () => this.between(0, 255).toString(16).padStart(2, '0')).join('');
    return {
      hex,
      uuid: () => [hex(4), hex(2), `4${hex(2).slice(1)}`, `8${hex(2).slice(1)}`, hex(6)].join('-'),
    };
  }

  private next(): number {
    const t = (this.a + this.b + this.d) | 0;
    this.d = (this.d + 1) | 0;
    this.a = this.b ^ (this.b >>> 9);
    this.b = (this.c + (this.c << 3)) | 0;
    this.c = ((this.c << 21) | (this.c >>> 11)) + t;
    this.c |= 0;
    return t;
  }
}
