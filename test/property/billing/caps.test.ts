import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CAPS_OF, LimitedMarketplace } from './limited-marketplace.js';
import { WHO, type Who } from './people.js';

const HEARTBEAT_S = 30;
const DISK_MICRO_A_GB = 100_000;
const PLENTY_MICRO = 1_000_000_000;
const HISTORIES = 15;

interface History {
  /** Milliseconds since 1970. */
  at: number;
  rates: number[];
  rounds: {
    whose: (typeof CAPS_OF)[number];
    day: number | null;
    month: number | null;
    seconds: number;
    /** Who starts all again at its end. */
    starts: Who | null;
  }[];
}

/** Less than, and more than, what is used in a round. */
const more = fc.oneof(fc.integer({ min: 1, max: 8_000_000 }), fc.constant(null));
const histories: fc.Arbitrary<History> = fc.record({
  /** Midnight comes at the end of a day, and of a month, within some rounds. */
  at: fc
    .tuple(fc.constantFrom(Date.UTC(2026, 0, 31), Date.UTC(2026, 1, 1)), fc.integer({ min: 1, max: 1_500 }))
    .map(([midnight, seconds]) => midnight - seconds * 1_000),
  rates: fc.array(fc.integer({ min: 1_000_000, max: 40_000_000 }), { minLength: 2, maxLength: 4 }),
  rounds: fc.array(
    fc.record({
      whose: fc.constantFrom(...CAPS_OF),
      day: more,
      month: more,
      seconds: fc.integer({ min: 1, max: 500 }),
      starts: fc.constantFrom(...WHO, null),
    }),
    { minLength: 2, maxLength: 5 },
  ),
});

/** Both caps end in one millisecond, in which the API key's instance costs more than its cap leaves. */
const BOTH_AT_ONCE = {
  at: Date.UTC(2026, 0, 31) - 1_000,
  rates: [31_583_018, 5_562_688],
  rounds: [
    { whose: 'all', day: null, month: 1, seconds: 2, starts: null },
    { whose: 'organization', day: null, month: 1, seconds: 1, starts: null },
  ],
} satisfies History;

it('caps of API keys and of their organization end GPU time beyond them, to the micro-dollar', () => {
  let capped = 0;
  fc.assert(
    fc.property(histories, ({ at, rates, rounds }) => {
      const marketplace = new LimitedMarketplace(HEARTBEAT_S, at);
      try {
        marketplace.credit(PLENTY_MICRO);
        for (const [index, rate] of rates.entries())
          marketplace.deploy(rate, DISK_MICRO_A_GB, index % 2 === 1 ? 'key' : 'member');
        marketplace.advance(3 * HEARTBEAT_S);
        for (const { whose, day, month, seconds, starts } of rounds) {
          marketplace.cap(whose, day, month);
          marketplace.advance(seconds);
          if (starts) for (const id of marketplace.alive) marketplace.start(id, starts);
          marketplace.advance(3 * HEARTBEAT_S);
        }
        expect(marketplace.differences()).toEqual([]);
        capped += marketplace.tally()['spend_cap_reached'] ?? 0;
      } finally {
        marketplace.close();
      }
    }),
    // Ids of instances are chosen by chance, and what is charged follows their order: each order comes.
    { numRuns: HISTORIES, examples: Array.from({ length: 4 }, (): [History] => [BOTH_AT_ONCE]) },
  );
  expect(capped).toBeGreaterThan(HISTORIES);
});
