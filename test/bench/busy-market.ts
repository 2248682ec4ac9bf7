import type { ApiClient } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { FakeAgent } from '../harness/fake-agent.js';
import { MeasuredControlPlane } from './measured-control-plane.js';

export const CREDIT_MICRO = 1_000_000_000_000;

export interface BusyMarket {
  controlPlane: MeasuredControlPlane;
  agents: FakeAgent[];
  /** One of each machine, which has seven GPUs left. */
  offers: string[];
  templateId: string;
  /** Sends what is measured. */
  renter: ApiClient;
  organizationId: string;
  /** One on each machine. */
  instances: string[];
  stop(): Promise<void>;
}

/** Founds a market with one running instance of one organization on each of `count` machines. */
export async function foundBusyMarket(count: number): Promise<BusyMarket> {
  const controlPlane = await MeasuredControlPlane.start();
  const { token } = await controlPlane.operator.post('/v1/operator/enrollment-tokens', { body: { max_uses: count } });
  const templateId = await controlPlane.template();
  const account = await controlPlane.signUp('renter@example.com', CREDIT_MICRO);
  const renter = controlPlane.connect(account.token);
  const [agents, offers, instances]: [FakeAgent[], string[], string[]] = [[], [], []];
  for (let index = 0; index < count; index++) {
    const agent = await FakeAgent.enroll(controlPlane.grpcAddress, token, { name: `bench-${index}`, gpus: 8 });
    await agent.connect();
    const offer_id = await controlPlane.offer(agent.hostId, 1_000 + index);
    const { id } = await renter.post('/v1/instances', { body: { offer_id, template_id: templateId, disk_gb: 10 } });
    agents.push(agent);
    offers.push(offer_id);
    instances.push(id);
  }
  for (const id of instances) {
    await eventually('the instance to run', async () => {
      const { status } = await renter.get('/v1/instances/{id}', { params: { path: { id } } });
      return status === 'running';
    });
  }
  const beats = agents.map((agent) => setInterval(() => agent.beat(), agent.heartbeatMs));
  return {
    controlPlane,
    agents,
    offers,
    templateId,
    instances,
    renter: controlPlane.measured(account.token),
    organizationId: account.organizationId,
    async stop() {
      for (const beat of beats) clearInterval(beat);
      for (const agent of agents) agent.close();
      await controlPlane.stop();
    },
  };
}
