import type { InstanceStatus } from '../../control-plane/domain/instances/instance-state.js';
import { adopt } from '../../control-plane/services/actions/adopt.js';
import { MINUTE_MS, cut, dispute, exit, loseJournal, lose, request, restartDocker, vanish } from './actions.js';
import type { SimHost } from './host.js';
import type { Attempted, World } from './world.js';
import { deploy } from '../../control-plane/services/actions/deploy.js';

/** Something that people or hosts do, from a quiet world on. */
export interface Scenario {
  name: string;
  /** How the instance stands before it; null: there is none yet. */
  from: 'running' | 'stopped' | null;
  /** What leads up to it, while nothing goes wrong yet. */
  before?: (scene: Scene) => unknown;
  /** What is done. Answers, or resolves with, the request whose outcome decides what is to be expected, if there is one. */
  act: (scene: Scene) => unknown;
  /** How long it takes until everything of it has happened, in milliseconds. */
  windowMs?: number;
  /** Where it leads when it was taken up; without that, also to where it came from. */
  ends: readonly InstanceStatus[];
}

export interface Scene {
  world: World;
  host: SimHost;
  /** Empty where there is no instance yet. */
  id: string;
}

const organizationOf = ({ renters }: World) => renters[0]?.organizationId ?? '';
/** One GPU, for the first renter. */
export function deployOne(world: World): Attempted {
  const [renter, offer_id, template_id] = [world.renters[0], world.offers[0], world.templates[0]];
  if (!renter || !offer_id || !template_id) throw new Error('there is nothing to rent');
  const request = { offer_id, template_id, disk_gb: 10, label: null, ssh_key_id: null, env_overrides: [] };
  return world.attempt('deploy', () => deploy(world.controlPlane.platform, renter, request));
}

const away = { toControlPlane: false, toHost: false };

export const SCENARIOS: readonly Scenario[] = [
  { name: 'deploy', from: null, act: ({ world }) => deployOne(world), ends: ['running', 'error'] },
  { name: 'stop', from: 'running', act: ({ world, id }) => request(world, 'stop', id), ends: ['stopped'] },
  { name: 'start', from: 'stopped', act: ({ world, id }) => request(world, 'start', id), ends: ['running', 'stopped'] },
  { name: 'destroy', from: 'running', act: ({ world, id }) => request(world, 'destroy', id), ends: ['destroyed'] },
  {
    name: 'destroy what is stopped',
    from: 'stopped',
    act: ({ world, id }) => request(world, 'destroy', id),
    ends: ['destroyed'],
  },
  {
    name: 'destroy twice',
    from: 'running',
    act: ({ world, id }) => [request(world, 'destroy', id), request(world, 'destroy', id)][0],
    ends: ['destroyed'],
  },
  {
    name: 'destroy while it is being made',
    from: null,
    act: async ({ world }) => {
      const deployed = deployOne(world);
      if (deployed.outcome !== 'done') return deployed;
      await world.timeline.advance(1_000);
      return request(world, 'destroy');
    },
    ends: ['destroyed'],
  },
  {
    name: 'stop when payments are frozen',
    from: 'running',
    act: ({ world, id }) => {
      dispute(world, organizationOf(world), true);
      return request(world, 'stop', id);
    },
    ends: ['stopped'],
  },
  {
    name: 'release what is stopped, and start it again',
    from: 'stopped',
    act: async ({ world, id }) => {
      dispute(world, organizationOf(world), true);
      await world.timeline.advance(15_000);
      dispute(world, organizationOf(world), false);
      return request(world, 'start', id);
    },
    ends: ['running', 'stopped'],
  },
  {
    name: 'start that gets no answer, and start again',
    from: 'stopped',
    act: async ({ world, host, id }) => {
      Object.assign(host.network ?? {}, { toControlPlane: false });
      request(world, 'start', id);
      await world.timeline.advance(12_000);
      Object.assign(host.network ?? {}, { toControlPlane: true });
      return request(world, 'start', id);
    },
    ends: ['running', 'stopped'],
  },
  {
    name: 'stop on a host that is away for longer than anything may take',
    from: 'running',
    before: async ({ world, host, id }) => {
      cut(world, host, away, 32 * MINUTE_MS);
      request(world, 'stop', id);
      await world.timeline.advance(29.5 * MINUTE_MS);
    },
    act: () => {},
    windowMs: 4 * MINUTE_MS,
    ends: ['stopped'],
  },
  {
    name: 'deploy on a host that is away for longer than anything may take',
    from: null,
    before: async ({ world, host }) => {
      cut(world, host, away, 32 * MINUTE_MS);
      deployOne(world);
      await world.timeline.advance(29.5 * MINUTE_MS);
    },
    act: () => {},
    windowMs: 4 * MINUTE_MS,
    // A control plane that was killed lets the host speak first.
    ends: ['error', 'running'],
  },
  {
    name: 'the workload ends by itself',
    from: 'running',
    act: ({ world, host }) => exit(world, host),
    ends: ['error'],
  },
  {
    name: 'the container is removed behind the agent’s back',
    from: 'running',
    act: ({ world, host }) => vanish(world, host),
    ends: ['error'],
  },
  { name: 'the host reboots', from: 'running', act: ({ host }) => host.reboot(15_000), ends: ['running'] },
  {
    name: 'Docker restarts',
    from: 'running',
    act: ({ world, host }) => restartDocker(world, host, false),
    ends: ['running'],
  },
  {
    name: 'the journal is lost',
    from: 'running',
    act: ({ world, host }) => loseJournal(world, host),
    ends: ['running'],
  },
  {
    name: 'the machine is declared lost, and comes back',
    from: 'running',
    act: async ({ world, host }) => {
      cut(world, host, away, 3 * MINUTE_MS);
      await world.timeline.advance(MINUTE_MS);
      lose(world, host);
      await world.timeline.advance(3 * MINUTE_MS);
      return undefined;
    },
    ends: ['error', 'running'],
  },
  {
    name: 'an older store is restored, and what it does not know is adopted',
    from: null,
    act: async ({ world }) => {
      world.takeBackup();
      deployOne(world);
      await world.timeline.advance(10_000);
      world.restoreBackup(10_000);
      await world.timeline.advance(40_000);
      const [found] = world.rows<{ id: string }>('SELECT id FROM quarantine');
      const [template_id, offer_id] = [world.templates[0] ?? '', world.offers[0] ?? ''];
      const adoption = { organization_id: organizationOf(world), template_id, offer_id, disk_gb: 10, label: null };
      if (!found) return { outcome: 'nothing to adopt' };
      return world.attempt('adopt', () => adopt(world.controlPlane.platform, world.operator, found.id, adoption));
    },
    ends: ['running'],
  },
];
