import type { Attempt } from '../../agent/commands/attempt.js';
import type { Dependencies } from '../../agent/commands/reconcile.js';
import type { Caller } from '../../control-plane/domain/caller.js';
import { recordTransition, type Reason } from '../../control-plane/services/events/timeline.js';
import type { Instance } from '../../control-plane/services/instances/queries.js';
import type { Platform } from '../../control-plane/services/system/platform.js';
import { query, updateRows } from '../../control-plane/store/sql.js';
import { original, overriding, type Bug, type Call, type Change } from './bug.js';
import type { Tx } from '../../control-plane/store/store.js';

const SERVICES = 'control-plane/services';

const dropClaims = (platform: Platform, id: string) =>
  platform.store.transact((tx) => tx.run(query.deleteFrom('gpu_claims').where('instance_id', '=', id)));

const performing = (change: (dependencies: Dependencies, attempt: Attempt, reconcile: Call) => unknown): Change => [
  'agent/commands/reconcile',
  (module) => ({
    reconcile: (dependencies: Dependencies, attempt: Attempt) =>
      change(dependencies, attempt, original(module, 'reconcile')),
  }),
];

const telling = (change: (tell: Call, ...told: unknown[]) => unknown): Change => [
  `${SERVICES}/events/timeline`,
  (module) => ({
    recordTransition: (...told: unknown[]) => change(original(module, 'recordTransition'), ...told),
  }),
];

const noClaims: Change = [`${SERVICES}/instances/claims`, () => ({ claimGpus: () => {} })];

/** One for each invariant at least. */
export const BUGS: readonly Bug[] = [
  {
    invariant: 'only allowed edges',
    bug: 'every action is possible in every status',
    changes: [
      [
        'control-plane/domain/instances/instance-state',
        () => ({ assertTransition: () => {}, allowedActions: () => ['start', 'stop', 'destroy'] }),
      ],
    ],
  },
  {
    invariant: 'destroyed is final, with nothing secret left',
    bug: 'a destroy keeps the secrets',
    changes: [
      [
        `${SERVICES}/instances/transitions`,
        (module) => ({
          transition: (tx: Tx, instance: Instance, to: string, ...rest: unknown[]) => {
            const next: unknown = original(module, 'transition')(tx, instance, to, ...rest);
            const { id, workload_encrypted, access_token_encrypted } = instance;
            const secrets = { workload_encrypted, access_token_encrypted };
            if (to === 'destroyed') tx.run(updateRows('instances', secrets, { id }));
            return next;
          },
        }),
      ],
    ],
  },
  {
    invariant: 'started_at never changes',
    bug: 'a status forgets when it first ran',
    seed: 6,
    changes: [
      [
        `${SERVICES}/instances/transitions`,
        (module) => ({
          transition: (tx: Tx, instance: object, to: string, ...more: unknown[]) =>
            original(module, 'transition')(
              tx,
              to === 'running' ? { ...instance, started_at: null } : instance,
              to,
              ...more,
            ),
        }),
      ],
    ],
  },
  {
    invariant: 'sequences never fall',
    bug: 'a report takes a number back',
    seed: 11,
    changes: [
      [
        `${SERVICES}/instances/transitions`,
        (module) => ({
          amend: (tx: Tx, instance: { sequence: number }, changes: object) =>
            original(module, 'amend')(
              tx,
              instance,
              'report_number' in changes ? { ...changes, sequence: instance.sequence - 1 } : changes,
            ),
        }),
      ],
    ],
  },
  { invariant: 'what may run holds its GPUs', bug: 'GPUs are not claimed', changes: [noClaims] },
  {
    invariant: 'released means released',
    bug: 'claims are never dropped',
    seed: 3,
    changes: [[`${SERVICES}/instances/claims`, () => ({ dropClaims: () => {} })]],
  },
  {
    invariant: 'a claim ends only by what the host has confirmed',
    bug: 'a destroy frees the GPUs at once',
    seed: 2,
    changes: [
      [
        `${SERVICES}/actions/destroy`,
        (module) => ({
          destroy: (platform: Platform, caller: Caller, id: string) => {
            const answer = original(module, 'destroy')(platform, caller, id);
            dropClaims(platform, id);
            return answer;
          },
        }),
      ],
    ],
  },
  {
    invariant: 'a GPU that a host uses is claimed by who uses it',
    bug: 'a stop frees the GPUs at once',
    seed: 11,
    changes: [
      [
        `${SERVICES}/actions/stop`,
        (module) => ({
          stop: (platform: Platform, caller: Caller, id: string) => {
            const answer = original(module, 'stop')(platform, caller, id);
            dropClaims(platform, id);
            return answer;
          },
        }),
      ],
    ],
  },
  {
    invariant: 'no GPU is in two running containers',
    bug: 'neither side looks who uses a GPU',
    seed: 5,
    changes: [
      noClaims,
      performing((dependencies, attempt, reconcile) => {
        const blind = new Proxy(dependencies.gpuAccess, {
          get: (access, name) => {
            const value: unknown = Reflect.get(access, name);
            if (name === 'check') return async () => {};
            if (name === 'acquire') return (_: string, __: string[], work: () => Promise<void>) => work();
            return typeof value === 'function' ? (value.bind(access) as unknown) : value;
          },
        });
        return reconcile({ ...dependencies, gpuAccess: blind }, attempt);
      }),
    ],
  },
  {
    invariant: 'a container that has been up is never made anew',
    bug: 'a start makes the container anew',
    seed: 4,
    changes: [
      performing(async (dependencies, attempt, reconcile) => {
        const { instanceId, desired } = attempt.command;
        if (desired?.$case === 'running' && !desired.value.mayCreate) {
          await dependencies.remover.remove(instanceId);
          desired.value.mayCreate = true;
        }
        return reconcile(dependencies, attempt);
      }),
    ],
  },
  {
    invariant: 'no disk is removed that nobody gave up',
    bug: 'a stop removes the container',
    changes: [
      performing(async (dependencies, attempt, reconcile) => {
        const { instanceId, desired } = attempt.command;
        if (desired?.$case === 'stopped') await dependencies.remover.remove(instanceId);
        return reconcile(dependencies, attempt);
      }),
    ],
  },
  {
    invariant: 'an end is the workload’s own',
    bug: 'what went down with Docker or the host has ended',
    seed: 18,
    changes: [overriding('agent/outages/outage-tracker', 'OutageTracker', () => ({ wasInterrupted: () => false }))],
  },
  {
    invariant: 'committed disk is within the machine’s',
    bug: 'disk is not counted',
    seed: 3,
    changes: [[`${SERVICES}/machines/machines`, () => ({ availableDiskGb: () => 500 })]],
  },
  {
    invariant: 'no stop hangs for longer than half an hour',
    bug: 'nothing ever times out',
    seed: 99,
    changes: [[`${SERVICES}/reconciler/time-outs`, () => ({ expireTransitions: () => ({ expired: 0 }) })]],
  },
  {
    invariant: 'sent means committed before',
    bug: 'a stop is sent before it is recorded',
    changes: [
      [
        `${SERVICES}/actions/stop`,
        (module) => ({
          stop: (platform: Platform, caller: Caller, id: string) => {
            for (const machineId of platform.connections.connectedIds()) {
              const command = {
                commandId: 'unheard of',
                instanceId: id,
                sequence: 0,
                desired: undefined,
                requestId: '',
                access: undefined,
              };
              platform.connections.send(machineId, { message: { $case: 'command', value: command } });
            }
            return original(module, 'stop')(platform, caller, id);
          },
        }),
      ],
    ],
  },
  {
    invariant: 'a command is carried out at most once',
    bug: 'the journal forgets what is finished',
    seed: 1,
    changes: [overriding('agent/journal/journal', 'Journal', () => ({ command: () => undefined }))],
  },
  {
    invariant: 'applied sequences never fall',
    bug: 'an agent takes up what is out of date',
    seed: 4,
    changes: [
      overriding('agent/journal/journal', 'Journal', ({ instance }) => ({
        instance(this: object, id: string) {
          const entry = instance?.call(this, id) as object | undefined;
          return entry && { ...entry, sequence: 0 };
        },
      })),
    ],
  },
  {
    invariant: 'allowed actions are what the API accepts',
    bug: 'what runs cannot be stopped',
    changes: [
      [
        'control-plane/domain/instances/instance-state',
        () => ({ allowedActions: (status: string) => (status === 'destroyed' ? [] : ['destroy']) }),
      ],
    ],
  },
  {
    invariant: 'nothing is on its way',
    bug: 'commands are never sent',
    scenario: 'destroy while it is being made',
    changes: [[`${SERVICES}/reconciler/dispatch`, () => ({ dispatchCommands: () => ({}) })]],
  },
  {
    invariant: 'what is destroyed holds nothing',
    bug: 'claims are never dropped',
    scenario: 'destroy',
    changes: [[`${SERVICES}/instances/claims`, () => ({ dropClaims: () => {} })]],
  },
  {
    invariant: 'no command is open',
    bug: 'an answered command stays open',
    scenario: 'deploy',
    changes: [[`${SERVICES}/instances/commands`, () => ({ finishCommand: () => {} })]],
  },
  {
    invariant: 'nothing is set apart',
    bug: 'a removal from quarantine never lands',
    scenario: 'an older store is restored, and what it does not know is removed',
    changes: [[`${SERVICES}/reconciler/quarantine`, () => ({ applyRemoved: () => {} })]],
  },
  {
    invariant: 'containers and instances match, with the same GPUs',
    bug: 'Docker says that it has removed what it has not',
    scenario: 'destroy what is stopped',
    changes: [overriding('test/simulation/docker', 'SimRuntime', () => ({ remove: async () => {} }))],
  },
  {
    invariant: 'every change of a status is told once, in its order',
    bug: 'a stop that the host has confirmed is not told',
    changes: [
      telling((tell, tx, instance, ...more) =>
        (instance as { status: string }).status === 'stopped' ? undefined : tell(tx, instance, ...more),
      ),
    ],
  },
  {
    invariant: 'every change of a status is told once, in its order',
    bug: 'a change is told twice',
    changes: [
      telling((tell, ...told) => {
        tell(...told);
        tell(...told);
      }),
    ],
  },
  {
    invariant: 'every change of a status is told once, in its order',
    bug: 'what did not happen is told',
    changes: [
      [
        `${SERVICES}/instances/requests`,
        (module) => ({
          requestStop: (tx: Tx, instance: Instance, reason: Reason) => {
            recordTransition(tx, { ...instance, status: 'stopped' }, 'stopping', reason);
            return original(module, 'requestStop')(tx, instance, reason);
          },
        }),
      ],
    ],
  },
  {
    invariant: 'what a schedule has to do is done, or told of',
    bug: 'a start that is refused is not told',
    seed: 5,
    changes: [[`${SERVICES}/events/timeline`, () => ({ recordScheduleRefused: () => {} })]],
  },
  {
    invariant: 'what a schedule has to do is done, or told of',
    bug: 'a stop is left out',
    seed: 11,
    changes: [
      [
        'control-plane/domain/instances/schedule',
        (module) => ({
          decide: (action: string, ...more: unknown[]) =>
            action === 'stop' ? 'nothing' : original(module, 'decide')(action, ...more),
        }),
      ],
    ],
  },
  {
    invariant: 'nothing that is due is left lying',
    bug: 'a schedule that is due is never looked at',
    seed: 1,
    changes: [[`${SERVICES}/instances/schedules`, () => ({ schedulesToLookAt: () => [] })]],
  },
  {
    invariant: 'events of a stream have no gap',
    bug: 'a number is skipped',
    changes: [
      telling((tell, ...told) => {
        tell(...told);
        const [tx, { organization_id }] = told as [Tx, Instance];
        const newest = query.selectFrom('events').select(({ fn }) => fn.max('number').as('number'));
        const number = tx.get(newest.where('stream', '=', organization_id))?.number ?? 0;
        const its = query
          .updateTable('events')
          .set({ number: number + 1 })
          .where('stream', '=', organization_id);
        if (number % 7 === 0) tx.run(its.where('number', '=', number));
      }),
    ],
  },
];
