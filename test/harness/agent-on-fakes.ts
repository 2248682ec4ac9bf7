import { assembleAgent, type Agent, type Parts } from '../../agent/assemble.js';
import { NO_NEEDS } from '../../agent/host/needs.js';
import { NO_UPGRADES } from '../../agent/upgrades/upgrades.js';
import { silentLogger } from '../../shared/logger.js';
import { BusyGpus } from './busy-gpus.js';
import { FakeRuntime } from './fake-runtime.js';
import { HaltedRunsInMemory } from './halted-runs-in-memory.js';
import { INVENTORY } from './inventory.js';

type Given = Pick<Parts, 'clock' | 'dial' | 'journal'> & Partial<Omit<Parts, 'docker'>>;

/** The whole agent over a fake Docker, on which everything works. `docker`: what it does otherwise. */
export function agentOnFakes(given: Given, docker: Partial<Parts['docker']> = {}): Agent {
  const gpus = given.gpus ?? new BusyGpus(1, 'test');
  const runtime = given.runtime ?? new FakeRuntime(given.clock);
  return assembleAgent({
    runtime,
    isolated: runtime,
    docker: {
      isAvailable: async () => true,
      startedAt: async () => 0,
      keepsWorkloads: async () => false,
      events: () => new Promise(() => {}),
      ...docker,
    },
    canary: { answers: async () => true, obstacle: '' },
    needs: NO_NEEDS,
    gpuStarter: null,
    gpus,
    random: () => 0.5,
    logger: silentLogger,
    web: {
      portGuard: { scheme: 'http', set: async () => {}, complete: () => {} },
      addressOf: async () => '',
      hostKeyAt: null,
      hostKeyFault: () => '',
      answers: async () => true,
    },
    haltedRuns: new HaltedRunsInMemory(),
    certificates: () => [],
    instruments: null,
    checks: [],
    upgrades: NO_UPGRADES,
    upkeep: {},
    prepare: async () => {},
    fail: () => undefined,
    describe: async () => ({ ...INVENTORY, gpus: (await gpus.inventory()).gpus }),
    diskFreeGb: async () => 100,
    boot: async () => ({ id: 'b', at: 0 }),
    ...given,
  });
}
