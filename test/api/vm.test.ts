import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import type { FakeAgent } from '../harness/fake-agent.js';

let test: TestControlPlane;
let renter: Renter;
let agent: FakeAgent;
let offerId: string;

beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
  agent = await test.host({ gpus: 2, vmCapable: true });
  agent.automatic = false;
  offerId = await test.offer(agent);
});
afterAll(() => test.stop());

async function deploy(kind: string): Promise<string> {
  const body = { offer_id: offerId, template_id: await test.template({ kind }), disk_gb: 10 };
  return (await renter.api.post<InstanceBody>('/v1/instances', body)).id;
}

const commandFor = (id: string, desired: string) =>
  eventually(`the command "${desired}"`, () =>
    agent.held.find((command) => command.instanceId === id && command.desired === desired),
  );

it('offers of machines that run virtual machines can be asked for', async () => {
  await test.offer(await test.host({ gpus: 1 }));
  const { items } = await renter.api.get<{ items: { id: string }[] }>('/v1/offers?vm_capable=true');
  expect(items.map(({ id }) => id)).toEqual([offerId]);
});

it('a host is told whether it is to run a virtual machine', async () => {
  for (const kind of ['container', 'vm']) {
    const command = await commandFor(await deploy(kind), 'running');
    expect(command.running?.spec.virtualMachine).toBe(kind === 'vm');
    agent.done(command);
  }
});

it('the GPUs of a virtual machine stay reserved while it is stopped, whatever its host can do', async () => {
  const { items } = await renter.api.get<{ items: InstanceBody[] }>('/v1/instances');
  for (const { id } of items) await renter.api.post(`/v1/instances/${id}/stop`);
  for (const { id } of items) agent.done(await commandFor(id, 'stopped'));
  for (const { id } of items) await statusIs(renter.api, id, 'stopped');
  await test.operator.request('POST', `/v1/operator/organizations/${renter.organizationId}/dispute`);
  const releases = await Promise.all(
    items.map(async ({ id }) => (await renter.api.get<{ gpu_release: string }>(`/v1/instances/${id}`)).gpu_release),
  );
  expect(releases.sort()).toEqual(['pending', 'unsupported']);
  expect(await renter.api.get(`/v1/offers/${offerId}`)).toMatchObject({ state: 'unavailable' });
});

it('a template of a virtual machine has no command, and says what to use', async () => {
  const body = { name: 'Machine', image: 'image:1', kind: 'vm', command: ['sleep', '1'] };
  const refused = await renter.api.request<{ message: string }>('POST', '/v1/templates', body);
  expect(refused.status).toBe(422);
  expect(refused.body.message).toMatch(/command.*use onstart/);
});
