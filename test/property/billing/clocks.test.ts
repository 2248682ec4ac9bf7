import fc from 'fast-check';
import { expect, it } from 'vitest';
import { DAY_MS } from '../../../shared/time.js';
import { isNight } from '../../harness/at-night.js';
import { Marketplace } from './marketplace.js';
import { StatedWorkloads } from './stated-workloads.js';

const HEARTBEAT_S = 30;
const RATE_MICRO = 36_000_000;
const MICRO_A_MS = RATE_MICRO / 3_600_000;
const PLENTY_MICRO = 1_000_000_000_000;
const HISTORIES = Number(process.env['TEST_ROUNDS'] ?? (isNight ? 60 : 3));

/** A marketplace of which every program has a clock of its own. */
class ClockedMarketplace extends Marketplace {
  protected override host(): StatedWorkloads {
    return new StatedWorkloads(this.clock);
  }

  get stated(): StatedWorkloads {
    return this.workloads as StatedWorkloads;
  }

  stepControlPlane(ms: number): void {
    this.clock.step(ms);
  }

  /** The clock is set once the next transaction has looked at it: such as while the group before it is committed. */
  stepAfterTheNextLook(ms: number): void {
    const store = this.running?.platform.store as unknown as { beforeEach: () => void };
    const look = store.beforeEach;
    store.beforeEach = () => {
      store.beforeEach = look;
      look();
      this.clock.step(ms);
    };
  }

  /** The agent is down for so long; `meanwhile` comes in the middle. */
  restartAgent(seconds: number, meanwhile: () => void): void {
    this.disconnect();
    this.stated.isAgentUp = false;
    this.advance(seconds);
    meanwhile();
    this.advance(seconds);
    this.stated.startAgent();
    this.connect();
  }

  /** The control plane is down for so long. */
  restartControlPlane(seconds: number, stepMs: number): void {
    this.crash();
    this.advance(seconds);
    this.clock.step(stepMs);
    this.advance(seconds);
    this.boot();
    this.connect();
  }

  override close(): void {
    super.close();
    this.stated.close();
  }
}

const step = fc.oneof(
  { weight: 2, arbitrary: fc.integer({ min: -DAY_MS, max: DAY_MS }) },
  // Such as time servers make.
  { weight: 1, arbitrary: fc.integer({ min: -2_000, max: 2_000 }) },
);
const whose = fc.constantFrom('host' as const, 'docker' as const, 'both' as const);
const seconds = fc.integer({ min: 1, max: 600 });
const which = fc.nat({ max: 5 });
const steps = fc.array(fc.tuple(whose, step), { maxLength: 2 });

const act = <T>(name: string, given: fc.Arbitrary<T>, run: (it: ClockedMarketplace, value: T) => void) =>
  given.map((value) => ({
    act: (marketplace: ClockedMarketplace) => run(marketplace, value),
    toString: () => `${name} ${JSON.stringify(value)}`,
  }));
const at = (it: ClockedMarketplace, index: number, work: (id: string) => void) => {
  const id = it.alive[index % Math.max(it.alive.length, 1)];
  if (id !== undefined) work(id);
};

const acts = fc.oneof(
  act('deploy', fc.constant(null), (it) => it.deploy(RATE_MICRO, 0)),
  act('start', which, (it, index) => at(it, index, (id) => it.start(id))),
  act('stop', which, (it, index) => at(it, index, (id) => it.stop(id))),
  act('exit', which, (it, index) => at(it, index, (id) => it.exit(id))),
  act('set a clock of the host', fc.tuple(whose, step), (it, [clock, ms]) => it.stated.step(clock, ms)),
  act('set the clock of the control plane', step, (it, ms) => it.stepControlPlane(ms)),
  act('confirm', fc.constant(null), (it) => it.confirmClock()),
  act('restart the agent', fc.tuple(seconds, steps, fc.boolean(), which), (it, [s, its, ends, index]) =>
    it.restartAgent(s, () => {
      for (const [clock, ms] of its) it.stated.step(clock, ms);
      if (ends) at(it, index, (id) => it.exit(id));
    }),
  ),
  act('restart the control plane', fc.tuple(seconds, fc.oneof(fc.constant(0), step)), (it, [s, ms]) =>
    it.restartControlPlane(s, ms),
  ),
);

it.each([
  ['once', (it: ClockedMarketplace) => it.stepControlPlane(26)],
  ['while it was down', (it: ClockedMarketplace) => it.restartControlPlane(1, 26)],
  // Wall clocks have whole milliseconds, monotonic ones have parts of them.
  ['just more than is noticed', (it: ClockedMarketplace) => it.stepControlPlane(1_000.4)],
  ['just more than is noticed, while it was down', (it: ClockedMarketplace) => it.restartControlPlane(1, 1_000.4)],
  [
    'again and again',
    (it: ClockedMarketplace) => {
      for (let nth = 0; nth < 10; nth++) it.stepControlPlane(900);
    },
  ],
] as const)('small steps of the control plane’s clock are charged to nobody: %s', (_, steps) => {
  const marketplace = new ClockedMarketplace(HEARTBEAT_S);
  try {
    marketplace.credit(PLENTY_MICRO);
    marketplace.deploy(RATE_MICRO, 0);
    marketplace.advance(2 * HEARTBEAT_S);
    const [id = ''] = marketplace.alive;
    steps(marketplace);
    marketplace.advance(5);
    marketplace.stop(id);
    marketplace.advance(5);
    expect(marketplace.differences()).toEqual([]);
    expect(marketplace.spentBy(id)).toBeGreaterThan(0);
  } finally {
    marketplace.close();
  }
});

it('a step of the control plane’s clock after it has looked at the clock, and before it reads the time, is charged to nobody', () => {
  const marketplace = new ClockedMarketplace(HEARTBEAT_S);
  try {
    marketplace.credit(PLENTY_MICRO);
    marketplace.deploy(RATE_MICRO, 0);
    marketplace.advance(2 * HEARTBEAT_S);
    const [id = ''] = marketplace.alive;
    marketplace.stepAfterTheNextLook(DAY_MS);
    marketplace.stop(id);
    marketplace.advance(2 * HEARTBEAT_S);
    expect(marketplace.differences()).toEqual([]);
    expect(marketplace.spentBy(id)).toBeGreaterThan(0);
  } finally {
    marketplace.close();
  }
});

it.each([9, -9])('a step of Docker’s clock by %d ms, which the agent does not notice, is charged to nobody', (ms) => {
  const marketplace = new ClockedMarketplace(HEARTBEAT_S);
  try {
    marketplace.credit(PLENTY_MICRO);
    marketplace.deploy(RATE_MICRO, 0);
    marketplace.advance(2 * HEARTBEAT_S);
    const [id = ''] = marketplace.alive;
    marketplace.restartAgent(5, () => {
      marketplace.stated.step('docker', ms);
      marketplace.exit(id);
    });
    marketplace.differences();
    const missing = Number(marketplace.reference.spendOf(id)) - marketplace.spentBy(id);
    expect(missing).toBe(Math.max(-ms, 0) * MICRO_A_MS);
  } finally {
    marketplace.close();
  }
});

it('clocks that are set anywhere, at any time, make nobody pay for more, and leave only so much unpaid', () => {
  const sums = { charged: 0, missing: 0 };
  fc.assert(
    fc.property(fc.array(fc.tuple(acts, seconds), { minLength: 10, maxLength: 20, size: 'max' }), (history) => {
      const marketplace = new ClockedMarketplace(HEARTBEAT_S);
      try {
        marketplace.credit(PLENTY_MICRO);
        marketplace.deploy(RATE_MICRO, 0);
        marketplace.advance(2 * HEARTBEAT_S);
        for (const [{ act: run }, pause] of history) {
          run(marketplace);
          marketplace.advance(pause);
        }
        marketplace.differences();
        for (const id of marketplace.reference.instances.keys()) {
          const missing = Number(marketplace.reference.spendOf(id)) - marketplace.spentBy(id);
          const allowedMs = marketplace.stated.undated.get(id) ?? 0;
          expect(missing).toBeGreaterThanOrEqual(0);
          expect(missing).toBeLessThanOrEqual(allowedMs * MICRO_A_MS);
          sums.charged += marketplace.spentBy(id);
          sums.missing += missing;
        }
      } finally {
        marketplace.close();
      }
    }),
    { numRuns: HISTORIES, endOnFailure: process.env['TEST_SHRINK'] === undefined },
  );
  expect(sums.charged).toBeGreaterThan(0);
  process.stdout.write(`charged ${sums.charged}, not charged ${sums.missing}\n`);
});
