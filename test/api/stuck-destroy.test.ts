import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';

let test: TestControlPlane;
let renter: Renter;
let templateId: string;

beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
  templateId = await test.template();
});
afterAll(() => test.stop());

async function running() {
  const agent = await test.host({ gpus: 1 });
  const body = { offer_id: await test.offer(agent, 1), template_id: templateId, disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  const deployAgain = () => renter.api.request<InstanceBody>('POST', '/v1/instances', body);
  const say = (gpusFree: boolean, message: string) => {
    agent.say({ progress: { instanceId: id, kind: 'destroy_attempt', message, gpusFree } });
    return eventually('the event', async () => {
      const { items } = await renter.api.get<{ items: { message: string }[] }>(`/v1/instances/${id}/events`);
      return items.some((event) => event.message === message);
    });
  };
  return { agent, id, deployAgain, say };
}

it('frees its GPUs once the host says that nothing of it can use them, and stays open', async () => {
  const { agent, id, deployAgain, say } = await running();
  agent.automatic = false;
  await renter.api.delete(`/v1/instances/${id}`);
  await eventually('the destroy', () => agent.held.length === 1);
  await say(false, 'tried for 1 minute');
  expect((await deployAgain()).status).toBe(409);
  await say(true, 'tried for 2 minutes');
  const { status, body } = await deployAgain();
  expect(status).toBe(201);
  agent.disconnect();
  agent.automatic = true;
  await agent.connect();
  await statusIs(renter.api, body.id, 'running');
  for (const command of Array.from(agent.held)) agent.done(command);
  await statusIs(renter.api, id, 'destroyed');
  expect((await deployAgain()).status).toBe(409);
});

it('is the only thing that the host can say so of', async () => {
  const { say, deployAgain } = await running();
  await say(true, 'nothing was to be destroyed');
  expect((await deployAgain()).status).toBe(409);
});
