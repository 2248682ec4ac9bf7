import type { Clock } from '../../shared/clock.js';
import { dataRootFolder, type AgentConfig } from '../config.js';
import { UNDO_SWITCH, describeDataRoot } from '../domain/data-root.js';
import { diskFreeGb } from '../host/inventory.js';
import { messageOf } from '../../shared/coded-error.js';
import { loadIdentity } from '../link/identity.js';
import { viewDataRoot, type DataRootView } from '../runtime/docker/data-root-guard.js';
import { DataRootNotes } from '../runtime/docker/data-root-notes.js';
import { Engine, requireRuntime } from '../runtime/docker/engine.js';
import { probeDiskQuota } from '../runtime/docker/quota-probe.js';
import { bad, doubtful, good, type Check, type Finding } from './finding.js';

const LEAST_FREE_GB = 20;

/** What of Docker and its disk has to be right. */
export function dockerChecks(config: AgentConfig, clock: Clock): Check[] {
  const engine = new Engine(config.dockerSocket, clock);
  return [
    {
      name: 'Docker',
      look: async () => {
        const { ServerVersion, Driver, LiveRestoreEnabled } = await engine.info();
        const restarts = LiveRestoreEnabled
          ? good('its containers outlive its restarts (live-restore)')
          : doubtful(
              'its containers go down when it restarts; the agent brings them back, and their renters notice',
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
          (error: unknown) => [bad(messageOf(error), 'name one that Docker knows, or none')],
        );
      },
    },
    {
      name: 'disk quota',
      look: async () => {
        if (await probeDiskQuota(engine, config.guestTools))
          return [good('a renter is held to the size that was rented')];
        const advice =
          'put Docker’s data on XFS mounted with pquota (storage driver overlay2), on btrfs or on ZFS; until then an operator has to waive it for this host';
        return [doubtful('a renter may fill the disk of all', advice)];
      },
    },
    {
      name: 'disk',
      look: async () => {
        const { DockerRootDir } = await engine.info();
        const free = await diskFreeGb(DockerRootDir);
        const what = `${free} GB of ${DockerRootDir} are free for renters`;
        return [free < LEAST_FREE_GB ? bad(what, 'make room, or move Docker’s data to a larger disk') : good(what)];
      },
    },
  ];
}

function view(config: AgentConfig, engine: Engine): Promise<DataRootView> {
  let hostId = '';
  try {
    ({ hostId } = loadIdentity(config.stateDir));
  } catch {
    // A host that is not enrolled has no instances; another check says that.
  }
  return viewDataRoot(engine, new DataRootNotes(dataRootFolder(config)), hostId);
}

/** A switch of it hides every instance that is there. */
function judgeRemapping({ now, shown, madeIn }: DataRootView, hasGpus: boolean): Finding {
  const instances = new Set([...shown, ...madeIn.keys()]).size;
  const isAre = instances === 1 ? 'is an instance' : `are ${instances} instances`;
  if (now.isRemapped && hasGpus)
    return doubtful(
      'are remapped, which nobody has tried with GPUs yet',
      `rent your own GPUs once, before strangers do${instances === 0 ? '' : `; do not switch it off while there ${isAre} on this host`}`,
    );
  if (now.isRemapped) return good('are remapped: root in a container is nobody on this host');
  return doubtful(
    'are not remapped: root in a container that gets out is root on this host',
    instances === 0
      ? '"userns-remap": "default" in /etc/docker/daemon.json is a further wall: see "User namespaces" in docs/host-owner.md'
      : `do not switch that now: there ${isAre} on this host, which Docker would not show any more; see "User namespaces" in docs/host-owner.md`,
  );
}
