import { sql, statement } from '../../control-plane/store/sql.js';
import type { Tx } from '../../control-plane/store/store.js';
import { original, overriding, type Bug } from './bug.js';

/** By journal: what it says of interrupted runs, as long as its agent lives. */
const unwritten = new WeakMap<object, string>();

/** One for each finding of the kept seeds: what they found is put in again. */
export const FOUND_BUGS: readonly (Bug & { found: string })[] = [
  {
    found: 'a run that was told of as over was charged again by an older word that it was up',
    invariant: 'GPU time is charged for no longer than the workload ran',
    bug: 'when a run began that is over is forgotten',
    scenario: 'a workload ends before anybody hears that it was started',
    // The report of the end, after the result of the command.
    fault: ['a message is lost', 19],
    changes: [
      [
        'control-plane/services/metering/usage-reports',
        (module) => ({
          recordUsageUp: (tx: Tx, instanceId: string, run: unknown) => {
            tx.run(
              statement(
                sql`UPDATE meter_intervals SET run_began_at = NULL WHERE instance_id = ${instanceId} AND closed_at IS NOT NULL`,
              ),
            );
            original(module, 'recordUsageUp')(tx, instanceId, run);
          },
        }),
      ],
    ],
  },
  {
    found: 'an end that a newer store had heard was never told to the older one',
    invariant: 'containers and instances match, with the same GPUs',
    bug: 'a hello does not tell of an end that was acknowledged',
    scenario: 'an older store is restored after a workload has ended',
    changes: [overriding('agent/session', 'Session', () => ({ endOf: async () => undefined }))],
  },
  {
    found: 'what had interrupted a workload was forgotten with the agent',
    invariant: 'an end is the workload’s own',
    bug: 'the marks of interrupted runs are not written down',
    scenario: 'Docker restarts',
    fault: ['before a Docker call', 1],
    changes: [
      overriding('agent/journal/journal', 'Journal', ({ meta, setMeta }) => ({
        meta(this: object, key: string) {
          return key === 'interrupted' ? unwritten.get(this) : meta?.call(this, key);
        },
        setMeta(this: object, key: string, value: string) {
          if (key === 'interrupted') unwritten.set(this, value);
          else setMeta?.call(this, key, value);
        },
      })),
    ],
  },
  {
    found: 'a container that no store knew stayed for ever',
    invariant: 'containers and instances match, with the same GPUs',
    bug: 'a container that was never started is not removed',
    scenario: 'an older store is restored while a container is made',
    changes: [overriding('agent/watch/watcher', 'Watcher', () => ({ dropUnstarted: () => {} }))],
  },
  {
    found: 'a lost journal took what had gone down with its host for ended',
    invariant: 'an end is the workload’s own',
    bug: 'a new journal takes what is down for ended',
    scenario: 'the host reboots, and its journal is lost',
    changes: [
      overriding('agent/journal/journal', 'Journal', ({ remember }) => ({
        remember(this: object, entry: { desired: string }) {
          remember?.call(this, entry.desired === 'unsure' ? { ...entry, desired: 'ended' } : entry);
        },
      })),
    ],
  },
  {
    found: 'a clock set back hid that Docker had been away',
    invariant: 'an end is the workload’s own',
    bug: 'an outage that ends before it began has interrupted nothing',
    scenario: 'the clock of a host is set back while Docker is away',
    changes: [
      [
        'agent/domain/exit',
        (module) => ({
          wasKilledBy: (outage: { from: number; to: number }, run: unknown) =>
            outage.to >= outage.from && original(module, 'wasKilledBy')(outage, run),
        }),
      ],
    ],
  },
  {
    found: 'a start took a workload for running that an earlier stop was taking down',
    invariant: 'an end is the workload’s own',
    bug: 'a start does not ask whether a stop is still under way',
    scenario: 'a start follows a stop in the middle of which the agent is killed',
    fault: ['a Docker call is late', 2],
    changes: [overriding('agent/journal/journal', 'Journal', () => ({ isStopCutShort: () => false }))],
  },
  {
    found: 'a lost journal took a workload that its host had stopped for want of pay for ended',
    invariant: 'an end is the workload’s own',
    bug: 'which runs the host has stopped is in its journal alone',
    scenario: 'the paid time ends while the host is away, and its journal is lost',
    changes: [overriding('agent/outages/outage-tracker', 'OutageTracker', () => ({ recallHalted: async () => {} }))],
  },
];
