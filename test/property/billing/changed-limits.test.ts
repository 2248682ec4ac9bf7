import fc from 'fast-check';
import { expect, it } from 'vitest';
import { LimitedMarketplace } from './limited-marketplace.js';

const HEARTBEAT_S = 30;
const RATE_MICRO = 36_000_000;
const DISK_MICRO_A_GB = 100_000;
const PLENTY_MICRO = 1_000_000_000;
const HISTORIES = 12;

/** Less than, and more than, what is used in such a time. */
const more = fc.oneof(fc.integer({ min: 1, max: 6_000_000 }), fc.constant(null));
const rounds = fc.array(
  fc.record({
    seconds: fc.integer({ min: 1, max: 400 }),
    unheard: fc.array(more, { minLength: 1, maxLength: 4 }),
    heard: more,
    starts: fc.boolean(),
  }),
  { minLength: 1, maxLength: 4 },
);

it('limits that change while the host is silent are those of their time, to the micro-dollar', () => {
  const tally = { running: 0, changed: 0 };
  fc.assert(
    fc.property(rounds, (its) => {
      const marketplace = new LimitedMarketplace(HEARTBEAT_S);
      try {
        marketplace.credit(PLENTY_MICRO);
        marketplace.deploy(RATE_MICRO, DISK_MICRO_A_GB);
        marketplace.advance(3 * HEARTBEAT_S);
        const [id = ''] = marketplace.alive;
        for (const { seconds, unheard, heard, starts } of its) {
          tally.changed += unheard.length;
          if (marketplace.statusOf(id) === 'running') tally.running++;
          marketplace.limitUnheard(id, seconds, unheard);
          marketplace.advance(seconds);
          marketplace.limit(id, null, heard);
          marketplace.advance(seconds);
          if (!starts) continue;
          marketplace.limit(id, null, null);
          marketplace.start(id);
          marketplace.advance(3 * HEARTBEAT_S);
        }
        expect(marketplace.differences()).toEqual([]);
      } finally {
        marketplace.close();
      }
    }),
    { numRuns: HISTORIES },
  );
  expect(tally.running).toBeGreaterThan(HISTORIES);
});
