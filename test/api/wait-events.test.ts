import { afterAll, beforeAll, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import type { InstanceBody } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { World } from '../contract/world.js';
import { statusIs } from '../harness/control-plane.js';
import type { FakeAgent } from '../harness/fake-agent.js';

const GRACE_MS = 2 * 60_000;
/** Before it is known what a command waits for. */
const LOOK_MS = 5_000;

let world: World;
beforeAll(async () => {
  world = await World.make();
  world.test.advance(GRACE_MS);
});
afterAll(() => world.stop());

const messagesOf = async (id: string, kind: string) => {
  const { items } = await world.admin.api.get<{ items: { kind: string; message: string }[] }>(
    `/v1/instances/${id}/events`,
  );
  return items.filter((event) => event.kind === kind).map(({ message }) => message);
};
const trouble = (agent: FakeAgent) => world.test.core.platform.connections.troubleOf(agent.hostId);

/** A host that answers nothing, with an instance that is to stop. */
async function stopping(): Promise<{ agent: FakeAgent; id: string }> {
  const { agent, body } = await world.host();
  const { id } = await world.running(body);
  agent.automatic = false;
  await world.admin.api.post(`/v1/instances/${id}/stop`);
  return { agent, id };
}

async function loses(agent: FakeAgent): Promise<void> {
  agent.disconnect();
  await eventually('the host to be away', () => trouble(agent) === 'host_away');
  world.test.advance(LOOK_MS);
}

/** Docker on the host does not answer, and the host is heard all the while. */
async function dockerDown(agent: FakeAgent, ms: number): Promise<void> {
  agent.beat({ dockerAvailable: false });
  await eventually('Docker to be down', () => trouble(agent) === 'docker_down');
  world.test.advance(LOOK_MS);
  world.test.advance(ms);
}

it('a command that waits for its host says so once, after ten seconds', async () => {
  const { agent, id } = await stopping();
  await loses(agent);
  world.test.advance(9_999);
  expect(await messagesOf(id, 'host_away')).toEqual([]);
  world.test.advance(LOOK_MS);
  expect(await messagesOf(id, 'host_away')).toEqual([
    'the stop waits: the host is not connected; the command is sent again as soon as it reconnects',
  ]);
  for (let minutes = 0; minutes < 20; minutes++) world.test.advance(MINUTE_MS);
  expect(await messagesOf(id, 'host_away')).toHaveLength(1);
});

it('and what it waits for else: Docker on the host', async () => {
  const { agent, id } = await stopping();
  await dockerDown(agent, 10_000);
  expect(await messagesOf(id, 'docker_down')).toEqual([
    'the stop waits: Docker on the host does not answer; the host continues as soon as Docker answers',
  ]);
  expect(await messagesOf(id, 'host_away')).toEqual([]);
});

it('a host that comes and goes is told of once in ten minutes', async () => {
  const { agent, id } = await stopping();
  for (let count = 0; count < 5; count++) {
    await loses(agent);
    world.test.advance(10_000);
    await agent.connect();
    world.test.advance(LOOK_MS);
  }
  expect(await messagesOf(id, 'host_away')).toHaveLength(1);
  world.test.advance(10 * MINUTE_MS);
  await loses(agent);
  world.test.advance(10_000);
  expect(await messagesOf(id, 'host_away')).toHaveLength(2);
});

it('nothing waits where nothing was asked for, where the machine was declared lost, or where the host does it', async () => {
  const { agent, body } = await world.host({ gpus: 2 });
  const [idle, gone] = [(await world.running(body)).id, (await world.running(body)).id];
  agent.automatic = false;
  await world.admin.api.post(`/v1/instances/${gone}/stop`);
  world.test.advance(10_000);
  expect(await messagesOf(gone, 'host_away')).toEqual([]);
  await loses(agent);
  await world.test.operator.post(`/v1/operator/machines/${agent.hostId}/lost`);
  world.test.advance(MINUTE_MS);
  for (const id of [idle, gone]) expect(await messagesOf(id, 'host_away'), id).toEqual([]);
});

it('right after a start of the control plane, hosts are still on their way back', async () => {
  const { agent, id } = await stopping();
  agent.disconnect();
  await world.test.restart();
  await world.test.signInOperator();
  world.test.advance(GRACE_MS / 2);
  world.test.advance(GRACE_MS / 2 - 1);
  expect(await messagesOf(id, 'host_away')).toEqual([]);
  world.test.advance(LOOK_MS);
  world.test.advance(10_000);
  expect(await messagesOf(id, 'host_away')).toHaveLength(1);
});

it('a host whose Docker does not answer is off the market with the word of it', async () => {
  const { agent, body } = await world.host();
  const state = async () => (await world.admin.api.get<{ state: string }>(`/v1/offers/${body.offer_id}`)).state;
  expect(await state()).toBe('available');
  agent.beat({ dockerAvailable: false });
  await eventually('the offer to be gone', async () => (await state()) === 'unavailable');
  const { items } = await world.admin.api.get<{ items: { id: string }[] }>('/v1/offers');
  expect(items.map(({ id }) => id)).not.toContain(body.offer_id);
  agent.beat();
  await eventually('the offer to be back', async () => (await state()) === 'available');
  const { id } = await world.admin.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(world.admin.api, id, 'running');
});
