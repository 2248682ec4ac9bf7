import type { ApiClient, InstanceBody } from '../../scripts/client.js';
import { eventually } from '../../scripts/eventually.js';
import { FakeAgent } from '../harness/fake-agent.js';
import { MeasuredControlPlane } from './measured-control-plane.js';

export interface BusyMarket {
  controlPlane: MeasuredControlPlane;
  agents: FakeAgent[];
  /** One of each machine, which has seven GPUs left. */
  offers: string[];
  templateId: string;
  renter: ApiClient;
  organizationId: string;
  /** One on each machine. */
  instances: string[];
  stop(): Promise<void>;
}

/** Founds a market with one running instance of one organization on each of `count` machines. */
export async function foundBusyMarket(count: number): Promise<BusyMarket> {
  const controlPlane = await MeasuredControlPlane.start();
  const { operator } = controlPlane;
  const tokens = '/v1/operator/enrollment-tokens';
  const { token } = await operator.post<{ token: string }>(tokens, { max_uses: count });
  const template = { name: 'Bench', image: 'bench:1' };
  const { id: templateId } = await operator.post<{ id: string }>('/v1/operator/templates', template);
  const { renter, organizationId } = await addRenter(controlPlane, 'renter@example.com');
  const [agents, offers, instances]: [FakeAgent[], string[], string[]] = [[], [], []];
  for (let index = 0; index < count; index++) {
    const agent = await FakeAgent.enroll(controlPlane.grpcAddress, token, { name: `bench-${index}`, gpus: 8 });
    await agent.connect();
    const prices = { price_per_hour_micro: 1_000 + index, storage_price_per_gb_hour_micro: 1 };
    const offer = { machine_id: agent.hostId, num_gpus: 1, ...prices };
    const { id: offer_id } = await operator.post<{ id: string }>('/v1/operator/offers', offer);
    const { id } = await renter.post<InstanceBody>('/v1/instances', { offer_id, template_id: templateId, disk_gb: 10 });
    agents.push(agent);
    offers.push(offer_id);
    instances.push(id);
  }
  for (const id of instances) {
    await eventually('the instance to run', async () => {
      const { status } = await renter.get<InstanceBody>(`/v1/instances/${id}`);
      return status === 'running';
    });
  }
  const beats = agents.map((agent) => setInterval(() => agent.beat(), agent.heartbeatMs));
  return {
    ...{ controlPlane, agents, offers, templateId, renter, organizationId, instances },
    async stop() {
      for (const beat of beats) clearInterval(beat);
      for (const agent of agents) agent.close();
      await controlPlane.stop();
    },
  };
}

/** Adds a user with an organization and credit. */
export async function addRenter(
  { operator, api }: MeasuredControlPlane,
  email: string,
): Promise<{ renter: ApiClient; organizationId: string }> {
  const account = await api.post<{ token: string; organization: { id: string } }>('/v1/auth/sign-up', {
    email,
    password: 'a renter password',
    name: 'Renter',
  });
  const { id: organizationId } = account.organization;
  const credits = `/v1/operator/organizations/${organizationId}/credits`;
  await operator.post(credits, { amount_micro: 1_000_000_000_000, reason: 'bench' });
  return { renter: api.as(account.token), organizationId };
}
