import type { Account } from '../../control-plane/domain/money/settlement.js';
import { PERIODS } from '../../control-plane/domain/money/spend-cap.js';
import { openMeter } from '../../control-plane/services/metering/meters.js';
import { sql, statement } from '../../control-plane/store/sql.js';
import type { Tx } from '../../control-plane/store/store.js';
import { after, original, type Bug, type Change } from './bug.js';

const SERVICES = 'control-plane/services';

const afterBooking = (text: string): Change =>
  after(`${SERVICES}/billing/settle/post-charges`, 'postCharges', (tx) => (tx as Tx).run(statement(sql.raw(text))));

/** What an account is settled by is changed. */
const misreading = (change: (account: Account, now: number) => Account): Change => [
  `${SERVICES}/billing/limits/load-accounts`,
  (module) => ({
    loadAccounts: (platform: unknown, tx: Tx, ids: unknown) => {
      const accounts = original(module, 'loadAccounts')(platform, tx, ids) as ReadonlyMap<string, Account>;
      return new Map([...accounts].map(([id, account]) => [id, change(account, tx.now)]));
    },
  }),
];

/** Limits of these kinds are not loaded. */
const withoutLimits = (kinds: readonly string[]): Change =>
  misreading((account) => ({ ...account, limits: account.limits.filter(({ name }) => !kinds.includes(name.kind)) }));

export const MONEY_BUGS: readonly Bug[] = [
  {
    invariant: 'an instance has spent the sum of its charges',
    bug: 'what is spent is counted on without a charge',
    changes: [afterBooking('UPDATE instances SET spend_micro = spend_micro + 1 WHERE spend_micro > 0')],
  },
  {
    invariant: 'a balance is what was credited less what was charged',
    bug: 'a settlement takes a micro-dollar more',
    changes: [afterBooking('UPDATE organizations SET balance_micro = balance_micro - 1')],
  },
  {
    invariant: 'what its days have cost is what was charged',
    bug: 'what a day has cost is forgotten',
    changes: [afterBooking('UPDATE organization_days SET gpu_micro = 0')],
  },
  {
    invariant: 'what its days have cost is the same in every group',
    bug: 'a micro-dollar more is counted for a label',
    changes: [afterBooking("UPDATE charge_days SET gpu_micro = gpu_micro + 1 WHERE grouped_by = 'label'")],
  },
  {
    invariant: 'only the row of the present hour grows',
    bug: 'a charge is booked into the first row of its instance',
    seed: 9,
    changes: [
      afterBooking(
        "UPDATE transactions SET amount_micro = amount_micro - 1 WHERE rowid = (SELECT min(rowid) FROM transactions WHERE kind = 'charge')",
      ),
    ],
  },
  {
    invariant: 'a meter runs in its status, and no two at once',
    bug: 'a meter is not switched when a stop begins',
    seed: 1,
    changes: [
      [
        `${SERVICES}/metering/meters`,
        (module) => ({
          switchMeter: (tx: Tx, before: string, instance: { status: string }) => {
            if (instance.status !== 'stopping') original(module, 'switchMeter')(tx, before, instance);
          },
        }),
      ],
    ],
  },
  {
    invariant: 'no disk is metered while its host is silent for more than a quarter of an hour',
    bug: 'nobody pauses the meters of disks',
    scenario: 'a host is silent for half an hour',
    changes: [[`${SERVICES}/metering/disks`, () => ({ pauseDisks: () => {} })]],
  },
  {
    invariant: 'GPU time is charged for no longer than the workload ran',
    bug: 'nobody asks the host whether a workload ran',
    seed: 4,
    changes: [
      misreading((account, now) => ({
        ...account,
        meters: account.meters.map((metered) => ({
          ...metered,
          intervals: metered.intervals.map((one) => ({ ...one, attestedTo: Math.min(one.closedAt ?? now, now) })),
        })),
      })),
    ],
  },
  {
    invariant: 'nothing is charged before it ran or after it was destroyed',
    bug: 'a disk is metered until its instance is destroyed, and on',
    changes: [
      after(`${SERVICES}/metering/meters`, 'switchMeter', (tx, _before, instance) => {
        const its = instance as Parameters<typeof openMeter>[1];
        if (its.status === 'destroyed') openMeter(tx as Tx, its, 'disk');
      }),
    ],
  },
  {
    invariant: 'what runs out of balance is stopped at once',
    bug: 'nothing follows from a balance',
    scenario: 'more is taken from a balance than there is',
    changes: [[`${SERVICES}/billing/limits/enforce-balance`, () => ({ enforceBalance: () => {} })]],
  },
  {
    invariant: 'nobody is destroyed before having had a day to pay',
    bug: 'a minute is taken for a day',
    scenario: 'more is taken from a balance than there is',
    changes: [['control-plane/domain/deadlines', () => ({ AUTO_DESTROY: { afterMs: 60_000, atMicro: -5_000_000 } })]],
  },
  {
    invariant: 'who does not pay for a day is destroyed',
    bug: 'nobody is ever destroyed for not having paid',
    seed: 14,
    changes: [[`${SERVICES}/billing/settle/auto-destroy`, () => ({ destroyUnpaid: () => ({ destroyed: 0 }) })]],
  },
  {
    invariant: 'what is accepted is covered',
    bug: 'nobody asks whether it is paid for',
    seed: 2,
    changes: [
      [
        `${SERVICES}/billing/payments/payment-check`,
        () => ({ checkPayment: () => {}, refusalOfBalance: () => undefined }),
      ],
    ],
  },
  {
    invariant: 'no GPU time is charged beyond the limit of an instance',
    bug: 'a settlement does not know what an instance may cost',
    seed: 10,
    hasLimits: true,
    changes: [withoutLimits(['max_charge'])],
  },
  {
    invariant: 'no GPU time is charged beyond the limit of an instance',
    bug: 'the millisecond in which a limit is used up is charged whole',
    seed: 12,
    hasLimits: true,
    changes: [['control-plane/domain/money/spend-limit', () => ({ uncoveredBy: () => [] })]],
  },
  {
    invariant: 'no GPU time is charged after the time to stop',
    bug: 'a settlement does not know when an instance is to stop',
    seed: 11,
    steps: 30,
    hasLimits: true,
    changes: [withoutLimits(['stop_at'])],
  },
  {
    invariant: 'no GPU time is charged beyond a cap',
    bug: 'a settlement does not know the caps',
    scenario: 'a cap is used up',
    changes: [withoutLimits(PERIODS)],
  },
  {
    invariant: 'what is used up asks for no stop that is still being sent',
    bug: 'nobody asks whether a stop is still being sent',
    seed: 13,
    hasLimits: true,
    changes: [[`${SERVICES}/instances/commands`, () => ({ isBeingStopped: () => false })]],
  },
  {
    invariant: 'what has reached its limit is stopped at once',
    bug: 'a limit ends what is charged, and stops nothing',
    seed: 11,
    hasLimits: true,
    changes: [[`${SERVICES}/billing/limits/enforce-limits`, () => ({ enforceLimit: () => undefined })]],
  },
  {
    invariant: 'only what was idle, and told so, is stopped for it',
    bug: 'nobody waits after the event',
    seed: 11,
    hasLimits: true,
    changes: [
      [
        'control-plane/domain/instances/idle',
        (module) => ({
          idleStep: (span: unknown, limitMs: unknown, stopsAt: unknown, now: number) =>
            original(module, 'idleStep')(span, limitMs, stopsAt === null ? null : now, now),
        }),
      ],
    ],
  },
  {
    invariant: 'what is idle is stopped',
    bug: 'nobody follows how long an instance is idle',
    seed: 3,
    steps: 30,
    hasLimits: true,
    changes: [[`${SERVICES}/billing/limits/idle-stop`, () => ({ followIdle: () => undefined })]],
  },
];
