import type { Clock } from '../../shared/clock.js';
import type { AgentConfig } from '../config.js';
import { describeLeft } from '../domain/left-behind.js';
import { formerHostId } from '../link/former-state.js';
import { Engine } from '../runtime/docker/engine.js';
import { foreignWorkloads } from '../runtime/docker/foreign-workloads.js';
import { doubtful, good, type Check } from './finding.js';

/** Returns the check for workloads of a machine that this host was before. Only the host owner can remove them. */
export function leftChecks(config: AgentConfig, clock: Clock): Check[] {
  return [
    {
      name: 'left workloads',
      look: async () => {
        const hostId = formerHostId(config.stateDir);
        if (hostId === undefined) return [];
        const left = await foreignWorkloads(new Engine(config.dockerSocket, clock), hostId);
        if (left.length === 0) return [good('there are none of an earlier machine')];
        return describeLeft(left).map(({ what, advice }) => doubtful(what, advice));
      },
    },
  ];
}
