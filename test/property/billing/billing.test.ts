import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CAPS_OF, LimitedMarketplace as Marketplace } from './limited-marketplace.js';
import { WHO } from './people.js';

const HOUR_S = 3_600;
const HISTORIES = Number(process.env['TEST_ROUNDS'] ?? 12);
const PLENTY_MICRO = 1_000_000_000_000;

const seconds = fc.oneof(
  { weight: 40, arbitrary: fc.integer({ min: 1, max: 90 }) },
  { weight: 30, arbitrary: fc.integer({ min: 60, max: HOUR_S }) },
  { weight: 10, arbitrary: fc.integer({ min: HOUR_S, max: 10 * HOUR_S }) },
  { weight: 2, arbitrary: fc.integer({ min: 20 * HOUR_S, max: 40 * HOUR_S }) },
);
const which = fc.nat({ max: 24 });
const who = fc.constantFrom(...WHO);
const rate = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: 0, max: 100 }) },
  { weight: 20, arbitrary: fc.integer({ min: 0, max: 40_000_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 1_000_000_000_000 }) },
);
const amount = fc.oneof(fc.integer({ min: 1, max: 1_000_000 }), fc.integer({ min: 1, max: 100_000_000 }));

const at = (marketplace: Marketplace, index: number, work: (id: string) => void) => {
  const instances = marketplace.alive;
  const id = instances[index % Math.max(instances.length, 1)];
  if (id !== undefined) work(id);
};

/** An act, told in words when a history fails. */
const act = <T>(name: string, given: fc.Arbitrary<T>, run: (marketplace: Marketplace, value: T) => void) =>
  given.map((value) => ({
    act: (marketplace: Marketplace) => run(marketplace, value),
    toString: () => `${name} ${JSON.stringify(value)}`,
  }));

const clock = act('clock', fc.integer({ min: -3_000, max: 3_000 }), (it, minutes) => it.setClock(minutes));

const deployed = fc.tuple(
  rate,
  rate.map((price) => price % 100_000),
);

const acts = [
  {
    weight: 30,
    arbitrary: act('deploy', fc.tuple(deployed, who), (it, [[gpu, disk], by]) => it.deploy(gpu, disk, by)),
  },
  { weight: 30, arbitrary: act('credit', amount, (it, micro) => it.credit(micro)) },
  { weight: 10, arbitrary: act('refund', amount, (it, micro) => it.refund(micro)) },
  { weight: 20, arbitrary: act('stop', which, (it, index) => at(it, index, (id) => it.stop(id))) },
  {
    weight: 30,
    arbitrary: act('start', fc.tuple(which, who), (it, [index, by]) => at(it, index, (id) => it.start(id, by))),
  },
  { weight: 10, arbitrary: act('destroy', which, (it, index) => at(it, index, (id) => it.destroy(id))) },
  { weight: 10, arbitrary: act('exit', which, (it, index) => at(it, index, (id) => it.exit(id))) },
  { weight: 10, arbitrary: act('reboot', fc.integer({ min: 1, max: 600 }), (it, s) => it.reboot(s)) },
  { weight: 5, arbitrary: act('dispute', fc.boolean(), (it, isOpen) => it.dispute(isOpen)) },
  {
    weight: 10,
    arbitrary: act('silence', seconds, (it, s) => {
      it.uncap();
      it.credit(PLENTY_MICRO);
      it.silence(s);
      it.refund(PLENTY_MICRO);
    }),
  },
  {
    weight: 10,
    arbitrary: act('downtime', fc.tuple(seconds, which, fc.nat({ max: 100 })), (it, [s, index, late]) => {
      it.crash();
      it.advance(s);
      at(it, index, (id) => it.exit(id));
      it.advance(s);
      it.boot();
      it.advance(late);
      it.connect();
    }),
  },
  {
    weight: 10,
    arbitrary: act('answers lost', fc.tuple(which, seconds), (it, [index, s]) => {
      it.uncap();
      it.credit(PLENTY_MICRO);
      at(it, index, (id) => it.stop(id));
      it.loseAnswers(s);
      it.refund(PLENTY_MICRO);
    }),
  },
  {
    weight: 20,
    arbitrary: act(
      'hesitation',
      fc.record({
        how: fc.constantFrom('comes up' as const, 'fails' as const),
        index: which,
        seconds: fc.nat({ max: 100 }),
        meanwhile: fc.constantFrom('wait', 'destroy', 'exit'),
        gpu: rate,
        by: who,
      }),
      (it, { how, index, seconds: s, meanwhile, gpu, by }) => {
        it.credit(PLENTY_MICRO);
        const isDeploy = index % 2 === 0;
        const begin = () => (isDeploy ? it.deploy(gpu, 1_000, by) : at(it, index, (id) => it.start(id, by)));
        it.hesitate(how, begin, s, () => {
          const id = isDeploy ? it.alive.at(-1) : it.alive[index % Math.max(it.alive.length, 1)];
          if (id !== undefined && meanwhile === 'destroy') it.destroy(id);
          if (id !== undefined && meanwhile === 'exit') it.exit(id);
        });
        it.refund(PLENTY_MICRO);
      },
    ),
  },
  {
    weight: 10,
    arbitrary: act('idle', fc.tuple(which, fc.integer({ min: 11, max: 40 })), (it, [index, minutes]) =>
      at(it, index, (id) => it.idle(id, minutes)),
    ),
  },
  { weight: 5, arbitrary: clock },
  { weight: 3, arbitrary: act('confirm', fc.constant(null), (it) => it.confirmClock()) },
];

const more = fc.oneof(amount, fc.constant(null));
/** Without steps of the clock, after which it is not plain to which day a use belongs. */
const actsWithLimits = [
  ...acts.filter(({ arbitrary }) => arbitrary !== clock),
  {
    weight: 40,
    arbitrary: act('limit', fc.tuple(which, fc.oneof(seconds, fc.constant(null)), more), (it, [index, s, micro]) =>
      at(it, index, (id) => it.limit(id, s, micro)),
    ),
  },
  {
    weight: 20,
    arbitrary: act(
      'limit unheard',
      fc.tuple(which, seconds, fc.array(more, { maxLength: 3 })),
      (it, [index, s, micros]) => {
        it.uncap();
        it.credit(PLENTY_MICRO);
        at(it, index, (id) => it.limitUnheard(id, s, micros));
        it.refund(PLENTY_MICRO);
      },
    ),
  },
  {
    weight: 30,
    arbitrary: act('cap', fc.tuple(fc.constantFrom(...CAPS_OF), more, more), (it, [whose, day, month]) =>
      it.cap(whose, day, month),
    ),
  },
];

type Acts = { weight: number; arbitrary: ReturnType<typeof act> }[];
const historiesOf = (its: Acts) =>
  fc.record({
    heartbeatS: fc.integer({ min: 20, max: 100 }),
    opening: fc.oneof(fc.integer({ min: 1, max: 50_000_000 }), fc.integer({ min: 1, max: 2_000_000_000 })),
    /** What a member and the API key deploy at first. */
    first: fc.tuple(deployed, deployed),
    steps: fc.array(fc.tuple(fc.oneof(...its), seconds), { minLength: 10, maxLength: 40, size: 'max' }),
  });

it.each([
  ['without limits', acts],
  ['with limits and caps', actsWithLimits],
])('what is charged equals, to the micro-dollar, what second by second should be: %s', (_, its) => {
  let simulatedS = 0;
  const tally: Record<string, number> = {};
  fc.assert(
    fc.property(historiesOf(its as Acts), ({ heartbeatS, opening, first, steps }) => {
      const marketplace = new Marketplace(heartbeatS);
      try {
        marketplace.credit(opening);
        for (const [index, [gpu, disk]] of first.entries())
          marketplace.deploy(gpu, disk, index === 1 ? 'key' : 'member');
        for (const [{ act: run }, pause] of steps) {
          run(marketplace);
          marketplace.advance(pause);
        }
        expect(marketplace.differences()).toEqual([]);
      } finally {
        for (const [kind, times] of Object.entries(marketplace.tally())) tally[kind] = (tally[kind] ?? 0) + times;
        simulatedS += marketplace.clock.monotonic() / 1_000;
        marketplace.close();
      }
    }),
    { numRuns: HISTORIES, endOnFailure: process.env['TEST_SHRINK'] === undefined },
  );
  expect(tally['running']).toBeGreaterThan(0);
  process.stdout.write(`${Math.round(simulatedS / 86_400)} days of billing: ${JSON.stringify(tally)}\n`);
});
