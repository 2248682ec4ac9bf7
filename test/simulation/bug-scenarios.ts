import { grantCredit } from '../../control-plane/services/billing/ledger/credits.js';
import { setSpendCaps } from '../../control-plane/services/billing/caps/spend-caps.js';
import { MINUTE_MS, cut, exit, loseJournal, request } from './actions.js';
import type { SimHost } from './host.js';
import { deployOne, type Scenario } from './scenarios.js';
import type { World } from './world.js';

/** What leads to a put-in bug without chance, most of them to what a kept seed has found. */
export const BUG_SCENARIOS: readonly Scenario[] = [
  {
    name: 'a workload ends before anybody hears that it was started',
    from: null,
    act: async ({ world, host }) => {
      cutOff(host, true);
      deployOne(world);
      await world.timeline.advance(MINUTE_MS);
      exit(world, host);
      await world.timeline.advance(10_000);
      cutOff(host, false);
      host.network?.drop();
    },
    ends: ['error'],
  },
  {
    name: 'an older store is restored after a workload has ended',
    from: 'running',
    act: async ({ world, host }) => {
      world.takeBackup();
      exit(world, host);
      await world.timeline.advance(MINUTE_MS);
      world.restoreBackup(10_000);
    },
    ends: ['error'],
  },
  {
    name: 'an older store is restored while a container is made',
    from: null,
    act: async ({ world, host }) => {
      world.takeBackup();
      deployOne(world);
      await until(world, () => host.docker.containers.size > 0);
      host.crashAgent();
      world.restoreBackup(10_000);
    },
    ends: [],
  },
  {
    name: 'an older store is restored, and what it does not know is removed',
    from: null,
    act: async ({ world }) => {
      world.takeBackup();
      deployOne(world);
      await world.timeline.advance(40_000);
      world.restoreBackup(10_000);
    },
    ends: [],
  },
  {
    name: 'more is taken from a balance than there is',
    from: 'running',
    act: ({ world }) => setBalance(world, -10_000_000),
    ends: ['stopped'],
  },
  {
    name: 'a cap is used up',
    from: 'running',
    act: ({ world }) => {
      const [renter] = world.renters;
      if (!renter) throw new Error('nobody rents');
      const caps = { burn_per_hour_micro: null, day_micro: 1_000_000, month_micro: null };
      world.attempt('caps', () => setSpendCaps(world.controlPlane.platform, renter, null, caps));
    },
    windowMs: 3 * MINUTE_MS,
    ends: ['stopped'],
  },
  {
    name: 'a host is silent for half an hour',
    from: 'stopped',
    act: async ({ world, host }) => {
      cutOff(host, true);
      await world.timeline.advance(30 * MINUTE_MS);
      cutOff(host, false);
      host.network?.drop();
    },
    ends: ['stopped'],
  },
  {
    name: 'the host reboots, and its journal is lost',
    from: 'running',
    act: ({ world, host }) => {
      host.reboot(15_000);
      loseJournal(world, host);
    },
    ends: ['running'],
  },
  {
    name: 'the paid time ends while the host is away, and its journal is lost',
    from: 'running',
    before: async ({ world, host }) => {
      setBalance(world, 2_000_000);
      await world.timeline.advance(1.5 * MINUTE_MS);
      cut(world, host, { toControlPlane: false, toHost: false }, 12 * MINUTE_MS);
      setBalance(world, 1_000_000_000);
      await world.timeline.advance(10 * MINUTE_MS);
    },
    act: ({ world, host }) => loseJournal(world, host),
    windowMs: 4 * MINUTE_MS,
    ends: ['running'],
  },
  {
    name: 'the clock of a host is set back while Docker is away',
    from: 'running',
    act: async ({ world, host }) => {
      host.docker.stopDaemon(false);
      await world.timeline.advance(5_000);
      host.wall.offset -= 60 * MINUTE_MS;
      world.jumpedAt = world.timeline.now;
      host.docker.startDaemon();
    },
    ends: ['running'],
  },
  {
    name: 'a start follows a stop in the middle of which the agent is killed',
    from: 'stopped',
    act: async ({ world, host, id }) => {
      // A start that gets no answer is undone by a stop.
      cutOff(host, true);
      request(world, 'start', id);
      await world.timeline.advance(12_000);
      cutOff(host, false);
      const again = request(world, 'start', id);
      host.crashAgent();
      await world.timeline.advance(2 * MINUTE_MS);
      return again;
    },
    ends: ['running', 'stopped'],
  },
];

/** The first renter has so much, in micro-dollars. */
function setBalance(world: World, balanceMicro: number): void {
  const [renter] = world.renters;
  if (!renter) throw new Error('nobody rents');
  const balance = 'SELECT balance_micro FROM organizations WHERE id = ?';
  const [row] = world.rows<{ balance_micro: number }>(balance, renter.organizationId);
  if (!row) throw new Error('the renter has no balance');
  const credit = { amount_micro: balanceMicro - row.balance_micro, reason: 'simulation' };
  world.attempt('credit', () =>
    grantCredit(world.controlPlane.platform, world.operator, renter.organizationId, credit),
  );
  world.witness.seeBalance(renter.organizationId, balanceMicro, world.timeline.now);
}

/** What the host says is lost, without a word. */
function cutOff({ network }: SimHost, isCut: boolean): void {
  if (network) network.toControlPlane = !isCut;
}

async function until({ timeline }: World, holds: () => boolean): Promise<void> {
  for (let ms = 0; !holds(); ms++) {
    if (ms > MINUTE_MS) throw new Error('it does not happen');
    await timeline.advance(1);
  }
}
