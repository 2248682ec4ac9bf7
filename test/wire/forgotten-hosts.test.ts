import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';

let test: TestControlPlane;

beforeAll(async () => {
  test = await TestControlPlane.start({ tls: { http: false, grpc: true, names: ['localhost', '127.0.0.1'] } });
});
afterAll(() => test.stop());

it('a host that has enrolled since a backup is known again after its restore, and what runs there is set apart', async () => {
  const renter = await test.renter();
  const template_id = await test.template();
  const backup = test.snapshot();
  // Certificates count whole seconds.
  test.clock.advance(2_000);
  const agent = await test.host({ gpus: 1 });
  const offer_id = await test.offer(agent);
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', { offer_id, template_id, disk_gb: 10 });
  await statusIs(renter.api, id, 'running');
  agent.disconnect();
  await eventually('its absence', () => !test.core.platform.connections.isConnected(agent.hostId));
  backup();
  await expect(agent.connect()).rejects.toThrow(/belongs to no host/);
  test.pretendRestored();
  await agent.connect();
  const { items } = await test.operator.get<{ items: { instance_id: string }[] }>('/v1/operator/quarantine');
  expect(items.map(({ instance_id }) => instance_id)).toContain(id);
  // Its GPU is not sold a second time.
  expect(await renter.api.get(`/v1/offers/${await test.offer(agent)}`)).toMatchObject({ state: 'unavailable' });
  // Who was let in by a certificate from after the restore, and is not known, is somebody else.
  const later = test.snapshot();
  test.clock.advance(2_000);
  const stranger = await test.host();
  stranger.disconnect();
  await eventually('its absence', () => !test.core.platform.connections.isConnected(stranger.hostId));
  later();
  await expect(stranger.connect()).rejects.toThrow(/belongs to no host/);
});
