import type { LinkProps } from '@tanstack/react-router';
import { limitsNoDisks } from './machine-state.js';
import type {
  Clock,
  IgnoredStop,
  Machine,
  OperatedInstance,
  OperatedOrganization,
  Worker,
  Workload,
} from './models.js';

/** What the list of needs is made of. */
export interface Situation {
  machines: readonly Machine[];
  quarantine: readonly Workload[];
  /** The instances whose hosts have an open command. */
  waiting: readonly OperatedInstance[];
  organizations: readonly OperatedOrganization[];
  workers: readonly Worker[];
  ignoredStops: readonly IgnoredStop[];
  clock: Clock;
}

/** Something that does not mend itself. */
export interface Need {
  key: string;
  words: string;
  /** Why, or what follows. */
  why?: string;
  /** Since when, ISO 8601. */
  since?: string | null;
  /** Where it can be mended. */
  link?: LinkProps & { words: string };
}

/** Returns what needs an act of an operator now, what concerns everybody first. */
export function needsOf(situation: Situation): Need[] {
  return [
    ...clockNeeds(situation.clock),
    ...situation.workers.filter(({ failing }) => failing).map(workerNeed),
    ...situation.machines.flatMap(machineNeeds),
    ...situation.waiting.filter(({ waits_for }) => waits_for?.reason === 'not_answered').map(commandNeed),
    ...situation.quarantine.filter(({ removal_requested_at }) => removal_requested_at === null).map(quarantineNeed),
    ...situation.organizations.filter(({ payments_frozen }) => payments_frozen).map(disputeNeed),
    ...situation.ignoredStops.map(ignoredStopNeed),
  ];
}

/** The clock's act stands on the overview itself. */
function clockNeeds({ held, since }: Clock): Need[] {
  if (!held) return [];
  return [{ key: 'clock', words: 'The clock is not trusted', why: 'Time-outs wait until you confirm it.', since }];
}

function workerNeed({ name, last_failure, last_failure_at }: Worker): Need {
  const why = last_failure === null ? {} : { why: last_failure };
  return { key: `worker ${name}`, words: `The background worker ${name} fails`, ...why, since: last_failure_at };
}

function machineNeeds(machine: Machine): Need[] {
  const link = { to: '/operator/machines/$id', params: { id: machine.id }, words: 'Look at the machine' } as const;
  const need = (kind: string, words: string, why?: string, since?: string | null): Need => ({
    ...{ key: `${kind} ${machine.id}`, words: `${machine.name} ${words}`, link },
    ...(why === undefined ? {} : { why }),
    ...(since === undefined ? {} : { since }),
  });
  if (machine.lost) return [need('lost', 'is lost and not removed')];
  if (!machine.connected) return [need('away', 'is away', 'Its agent is not connected.', machine.last_seen_at)];
  const sick = machine.gpus.filter(({ healthy }) => !healthy);
  return [
    ...(sick.length > 0 ? [need('gpus', `has ${gpus(sick.length)}`, sick[0]?.reason ?? undefined)] : []),
    ...(machine.obstacle !== null ? [need('obstacle', 'takes no instances', machine.obstacle)] : []),
    ...(limitsNoDisks(machine) ? [need('disks', 'is not offered', 'It does not limit the disks of renters.')] : []),
  ];
}

const gpus = (count: number) => `${count} unhealthy ${count === 1 ? 'GPU' : 'GPUs'}`;

function commandNeed({ id, machine_id, machine_name, waits_for }: OperatedInstance): Need {
  return {
    key: `command ${id}`,
    words: `${machine_name} has not done ${waits_for?.command ?? 'a command'} for an instance`,
    ...(waits_for ? { why: waits_for.message, since: waits_for.since } : {}),
    link: { to: '/operator/machines/$id', params: { id: machine_id }, words: 'Look at the machine' },
  };
}

function quarantineNeed({ id, machine_name, organization_name, found_at }: Workload): Need {
  return {
    key: `quarantine ${id}`,
    words: `${machine_name} has a workload in quarantine`,
    why: organization_name === null ? 'Whose it is is not known.' : `It was deployed for ${organization_name}.`,
    since: found_at,
    link: { to: '/operator/quarantine', words: 'Adopt or remove it' },
  };
}

function disputeNeed({ id, name }: OperatedOrganization): Need {
  return {
    key: `dispute ${id}`,
    words: `${name} disputes a payment`,
    why: 'It can neither deploy nor start.',
    link: { to: '/operator/organizations/$id', params: { id }, words: 'Look at the organization' },
  };
}

function ignoredStopNeed({ instance_id, organization_id, since }: IgnoredStop): Need {
  return {
    key: `ignored stop ${instance_id}`,
    words: 'An instance was charged after a stop that its host did not confirm in time',
    why: instance_id,
    since,
    link: { to: '/operator/organizations/$id', params: { id: organization_id }, words: 'Look at the organization' },
  };
}
