import { eventually } from '../../scripts/eventually.js';
import type { TestControlPlane } from '../harness/control-plane.js';
import type { FakeAgent } from '../harness/fake-agent.js';
import type { AlertCase } from './cases.js';

export const machineOf = (test: TestControlPlane, agent: FakeAgent) =>
  test.operator.get<{ connected: boolean; gpus: { healthy: boolean; reason: string | null }[] }>(
    `/v1/operator/machines/${agent.hostId}`,
  );

const unhealthyGpus: AlertCase = {
  how: 'a host says that a GPU is not sound',
  summary: /^1 GPU\(s\) are unhealthy: nobody can rent them/,
  async provoke({ controlPlane: test }) {
    const agent = await test.host({ gpus: 2 });
    const [gpu = {}] = agent.inventory['gpus'] as object[];
    const say = (state: { healthy: boolean; reason: string }) => {
      Object.assign(gpu, state);
      agent.beat();
    };
    say({ healthy: false, reason: 'XID 79' });
    await eventually('its reason to be told', async () =>
      (await machineOf(test, agent)).gpus.some(({ healthy, reason }) => !healthy && reason === 'XID 79'),
    );
    return async () => say({ healthy: true, reason: '' });
  },
};

const missingGpus: AlertCase = {
  how: 'the driver of a host no longer lists a GPU',
  summary: /^1 GPU\(s\) are gone/,
  also: ['GpurentGpusUnhealthy'],
  async provoke({ controlPlane: test }) {
    const agent = await test.host({ gpus: 1 });
    const gpus = agent.inventory['gpus'] as object[];
    agent.beat({ gpus: gpus.map((gpu) => ({ ...gpu, healthy: false, reason: 'not listed', missing: true })) });
    return async () => agent.beat();
  },
};

const disputedGpus: AlertCase = {
  how: 'a host reports a GPU that belongs to another machine',
  summary: /^1 GPU\(s\) are reported by two machines/,
  async provoke({ controlPlane: test }) {
    const agent = await test.host({ gpus: 1 });
    const later = await test.host({ givenGpus: agent.inventory['gpus'] as { uuid: string }[] });
    return async () => {
      await test.operator.post(`/v1/operator/machines/${later.hostId}/assign-gpus`, {});
      agent.say({ heartbeat: { dockerAvailable: true, gpus: [], diskFreeGb: 1_000 } });
    };
  },
};

/** By alert. */
export const gpuCases: Readonly<Record<string, readonly AlertCase[]>> = {
  GpurentGpusUnhealthy: [unhealthyGpus],
  GpurentGpusMissing: [missingGpus],
  GpurentGpusDisputed: [disputedGpus],
};
