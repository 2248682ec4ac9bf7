import type { InstanceBody } from './api-client.js';
import { statusIs, type Renter, type TestControlPlane } from './control-plane.js';
import type { FakeAgent } from './fake-agent.js';

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
/** An hour of an instance costs so much of GPU while it runs, and of disk while it is stopped. */
export const GPU_MICRO = 36_000_000;
export const DISK_MICRO = 10_000_000;
const DISK_GB = 10;

/** A renter with little: the balance is two hours of GPU time of every instance. */
export interface Poor {
  renter: Renter;
  agent: FakeAgent;
  /** The first instance. */
  id: string;
  ids: string[];
  offerId: string;
  read(id?: string): Promise<InstanceBody>;
  balance(): Promise<number>;
  /** Time passes, and at its end the host, if it is connected, has said what runs. */
  pass(ms: number): Promise<void>;
  /** Time passes while there is no control plane; its host is heard again once it is back. */
  away(ms: number, meanwhile?: () => void): Promise<void>;
  /** An operator grants credit. */
  credit(amountMicro: number): Promise<unknown>;
  /** The kinds of the events of the first instance. */
  eventKinds(): Promise<string[]>;
}

export async function makePoor(test: TestControlPlane, templateId: string, instances = 1): Promise<Poor> {
  const renter = await test.renter(2 * GPU_MICRO * instances);
  const agent = await test.host({ gpus: instances });
  const { id: offerId } = await test.operator.post<{ id: string }>('/v1/operator/offers', {
    machine_id: agent.hostId,
    num_gpus: 1,
    price_per_hour_micro: GPU_MICRO,
    storage_price_per_gb_hour_micro: DISK_MICRO / DISK_GB,
  });
  const body = { offer_id: offerId, template_id: templateId, disk_gb: DISK_GB };
  const ids: string[] = [];
  for (let index = 0; index < instances; index++) {
    ids.push((await renter.api.post<InstanceBody>('/v1/instances', body)).id);
  }
  for (const id of ids) await statusIs(renter.api, id, 'running');
  const [first] = ids;
  if (first === undefined) throw new Error('give at least one instance');
  const pass = async (ms: number) => {
    test.advance(ms);
    if (agent.connected) for (const id of ids) await agent.speak(id);
    test.advance(0);
  };
  return {
    renter,
    agent,
    id: first,
    ids,
    offerId,
    read: (id = first) => renter.api.get<InstanceBody>(`/v1/instances/${id}`),
    balance: async () => (await renter.api.get<{ balance_micro: number }>('/v1/orgs/current')).balance_micro,
    pass,
    async away(ms, meanwhile = () => {}) {
      await test.core.stop();
      test.clock.advance(ms);
      meanwhile();
      await test.boot();
      test.advance(0);
      await agent.connect();
      await pass(1_000);
    },
    credit: (amount_micro) =>
      test.operator.post(`/v1/operator/organizations/${renter.organizationId}/credits`, {
        amount_micro,
        reason: 'test',
      }),
    eventKinds: async () =>
      (await renter.api.get<{ items: { kind: string }[] }>(`/v1/instances/${first}/events`)).items.map(
        ({ kind }) => kind,
      ),
  };
}
