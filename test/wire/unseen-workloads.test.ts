import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import type { InstanceBody } from '../harness/api-client.js';
import { query } from '../../control-plane/store/sql.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';

let test: TestControlPlane;
let renter: Renter;

beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
});
afterAll(() => test.stop());

/** A host with an instance that runs, and one that is stopped. */
async function twoInstances() {
  const agent = await test.host({ gpus: 3 });
  const body = { offer_id: await test.offer(agent, 1), template_id: await test.template(), disk_gb: 10 };
  const deploy = async () => {
    const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
    await statusIs(renter.api, id, 'running');
    return id;
  };
  const [up, down] = [await deploy(), await deploy()];
  await renter.api.post(`/v1/instances/${down}/stop`);
  await statusIs(renter.api, down, 'stopped');
  return { agent, up, down, body };
}

const read = (id: string) => renter.api.get<InstanceBody>(`/v1/instances/${id}`);
const machine = (id: string) =>
  test.core.platform.store.transact((tx) => tx.get(query.selectFrom('machines').selectAll().where('id', '=', id)));

describe('a host that says that it cannot see what it has', () => {
  it('is believed nothing of how that stands, and does what it is told', async () => {
    const { agent, up, down } = await twoInstances();
    agent.disconnect();
    agent.automatic = false;
    await renter.api.post(`/v1/instances/${up}/stop`);
    const welcome = await agent.claim({ unseen: true, instances: [] });
    expect(welcome).toMatchObject({ takesUnseen: true });
    await eventually('the stop', () => agent.held.length === 1);
    expect(await read(up)).toMatchObject({ status: 'stopping' });
    expect(await read(down)).toMatchObject({ status: 'stopped', error_code: null });
    for (const command of Array.from(agent.held)) agent.done(command);
    await statusIs(renter.api, up, 'stopped');
  });

  it('keeps its running instances, and is given nothing new before its next heartbeat', async () => {
    const { agent, up, body } = await twoInstances();
    agent.disconnect();
    agent.beat = () => undefined;
    await agent.claim({ unseen: true, instances: [] });
    expect(await read(up)).toMatchObject({ status: 'running' });
    expect((await renter.api.request('POST', '/v1/instances', body)).status).toBe(409);
  });

  it('is still taken for ahead of a restored store', async () => {
    const { agent } = await twoInstances();
    test.core.platform.store.transact((tx) =>
      tx.run(query.updateTable('machines').set({ needs_resync: 1 }).where('id', '=', agent.hostId)),
    );
    await agent.claim({ unseen: true, instances: [] });
    expect(machine(agent.hostId)?.needs_resync).toBe(1);
    await agent.claim({});
    expect(machine(agent.hostId)?.needs_resync).toBe(0);
  });
});
