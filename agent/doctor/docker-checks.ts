import type { Clock } from '../../shared/clock.js';
import { dataRootFolder, type AgentConfig } from '../config.js';
import { UNDO_SWITCH, describeDataRoot } from '../domain/data-root.js';
import { diskFreeGb } from '../host/inventory.js';
import { messageOf } from '../../shared/coded-error.js';
import { loadIdentity } from '../link/identity.js';
import { viewDataRoot, type DataRootView } from '../runtime/docker/data-roots/data-root-guard.js';
import { DataRootNotes } from '../runtime/docker/data-roots/data-root-notes.js';
import { Engine, requireRuntime } from '../runtime/docker/engine.js';
import { bad, doubtful, good, type Check, type Finding } from './finding.js';

const LEAST_FREE_GB = 20;

/** Returns the checks of Docker, its data root and its disk. `enforcesQuota` tells whether Docker enforces the sizes of disks. */
export function dockerChecks(config: AgentConfig, clock: Clock, enforcesQuota: () => Promise<boolean>): Check[] {
  const engine = new Engine(config.dockerSocket, clock);
  return [
    {
      name: 'Docker',
      look: async () => {
        const { ServerVersion, Driver, LiveRestoreEnabled } = await engine.info();
        const restarts = LiveRestoreEnabled
          ? good('containers keep running while Docker restarts (live-restore)')
          : doubtful(
              'containers go down when Docker restarts; the agent starts them again, and their renters notice',
              'add "live-restore": true to /etc/docker/daemon.json and reload Docker',
            );
        return [good(`${ServerVersion}, storage ${Driver}`), restarts];
      },
    },
    {
      name: 'data root',
      look: async () => {
        const { now, complaint } = await view(config, engine);
        return [complaint === undefined ? good(describeDataRoot(now)) : bad(complaint, UNDO_SWITCH)];
      },
    },
    {
      name: 'user namespaces',
      look: async () => [judgeRemapping(await view(config, engine), config.gpus.kind === 'nvidia')],
    },
    {
      name: 'container runtime',
      look: async () => {
        const { containerRuntime: name } = config;
        return requireRuntime(engine, name).then(
          () => [good(name === null ? 'containers run with Docker’s default' : `containers run with ${name}`)],
          (error: unknown) => [
            bad(messageOf(error), 'set GPURENT_AGENT_CONTAINER_RUNTIME to a runtime that Docker knows, or remove it'),
          ],
        );
      },
    },
    {
      name: 'disk quota',
      look: async () => {
        if (await enforcesQuota()) return [good('Docker limits each disk to the rented size')];
        const advice =
          'put Docker’s data on XFS mounted with pquota (storage driver overlay2), on btrfs or on ZFS; until then an operator must waive disk quotas for this host';
        return [doubtful('one renter can fill the disk of all', advice)];
      },
    },
    {
      name: 'disk',
      look: async () => {
        const { DockerRootDir } = await engine.info();
        const free = await diskFreeGb(DockerRootDir);
        const what = `${free} GB of ${DockerRootDir} are free for renters`;
        return [
          free < LEAST_FREE_GB ? bad(what, 'free disk space, or move Docker’s data to a larger disk') : good(what),
        ];
      },
    },
  ];
}

function view(config: AgentConfig, engine: Engine): Promise<DataRootView> {
  let hostId = '';
  try {
    ({ hostId } = loadIdentity(config.stateDir));
  } catch {
    // A host that is not enrolled has no instances; the enrollment check reports it.
  }
  return viewDataRoot(engine, new DataRootNotes(dataRootFolder(config)), hostId);
}

/**
 * Judges user namespace remapping. Switching it on or off makes Docker hide every existing instance, so the advice depends on
 * how many instances there are.
 */
function judgeRemapping({ now, shown, madeIn }: DataRootView, hasGpus: boolean): Finding {
  const instances = new Set([...shown, ...madeIn.keys()]).size;
  const isAre = instances === 1 ? 'is an instance' : `are ${instances} instances`;
  if (now.isRemapped && hasGpus)
    return doubtful(
      'are remapped, which is untested with GPUs',
      `rent your own GPUs once before renters do${instances === 0 ? '' : `; do not switch remapping off while there ${isAre} on this host`}`,
    );
  if (now.isRemapped) return good('are remapped: root in a container is an unprivileged account on this host');
  return doubtful(
    'are not remapped: root that escapes from a container is root on this host',
    instances === 0
      ? 'consider "userns-remap": "default" in /etc/docker/daemon.json: see "User namespaces" in docs/host-owner.md'
      : `do not switch remapping on now: Docker would no longer show what runs here, and there ${isAre} on this host; see "User namespaces" in docs/host-owner.md`,
  );
}
