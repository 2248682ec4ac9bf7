import type { Clock } from '../../shared/clock.js';
import type { AgentConfig } from '../config.js';
import { diskFreeGb } from '../host/inventory.js';
import { messageOf } from '../../shared/coded-error.js';
import { Engine, requireRuntime } from '../runtime/docker/engine.js';
import { probeDiskQuota } from '../runtime/docker/quota-probe.js';
import { bad, doubtful, good, type Check } from './finding.js';

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
