import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import type { InstanceBody } from '../harness/api-client.js';
import { query } from '../../control-plane/store/sql.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import type { FakeAgent } from '../harness/fake-agent.js';
import type { WireCommand } from '../harness/wire.js';

let test: TestControlPlane;
let renter: Renter;
let templateId: string;

beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
  templateId = await test.template();
});
afterAll(() => test.stop());

const read = (id: string) => renter.api.get<InstanceBody>(`/v1/instances/${id}`);
const ask = (method: string, path: string) => renter.api.request<InstanceBody>(method, `/v1/instances/${path}`);
const dispute = (method: string) =>
  test.operator.request(method, `/v1/operator/organizations/${renter.organizationId}/dispute`);

async function created() {
  const agent = await test.host({ gpus: 1 });
  agent.automatic = false;
  const body = { offer_id: await test.offer(agent), template_id: templateId, disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  return { agent, id, offerId: body.offer_id, provision: await eventually('the command', () => agent.held[0]) };
}

async function running() {
  const made = await created();
  made.agent.done(made.provision);
  await statusIs(renter.api, made.id, 'running');
  return made;
}

/** The next command that is not one of those seen. */
async function next(agent: FakeAgent, ...seen: WireCommand[]): Promise<WireCommand> {
  return advanceUntil('a command', { clock: test, stepMs: 1_000, parties: [() => agent.roundTrip()] }, () => {
    return agent.held.find(({ commandId }) => !seen.some((other) => other.commandId === commandId));
  });
}

describe('a provision', () => {
  it('without progress for half an hour fails, and its GPU is free once the host has cleaned up', async () => {
    const { agent, id, offerId, provision } = await created();
    test.advance(30 * MINUTE_MS - 1);
    expect((await read(id)).status).toBe('creating');
    test.advance(1);
    expect(await read(id)).toMatchObject({
      status: 'error',
      error_code: 'provision_failed',
      error_message: expect.stringContaining('progress') as string,
      started_at: null,
    });
    const cleanUp = await next(agent, provision);
    expect(cleanUp).toMatchObject({ desired: 'stopped', stopped: { releaseGpus: true } });
    expect(await renter.api.get(`/v1/offers/${offerId}`)).toMatchObject({ state: 'unavailable' });
    agent.done(provision);
    agent.done(cleanUp);
    await eventually('the offer', async () => {
      agent.beat();
      return (await renter.api.get<{ state: string }>(`/v1/offers/${offerId}`)).state === 'available';
    });
    expect((await read(id)).status).toBe('error');
  });

  it('that makes progress takes as long as it takes', async () => {
    const { agent, id, provision } = await created();
    for (let count = 1; count <= 3; count++) {
      test.advance(29 * MINUTE_MS);
      agent.say({ progress: { instanceId: id, kind: 'pulling', message: `${count * 20} %` } });
      await eventually('the progress', async () => {
        const { items } = await renter.api.get<{ items: { message: string }[] }>(`/v1/instances/${id}/events`);
        return items[0]?.message === `${count * 20} %`;
      });
      expect((await read(id)).status).toBe('creating');
    }
    agent.beat();
    agent.done(provision);
    await statusIs(renter.api, id, 'running');
  });
});

it('after its own absence the control plane hears its hosts first', async () => {
  const { agent, id, provision } = await created();
  agent.disconnect();
  agent.lose(provision);
  await test.core.stop();
  test.clock.advance(40 * MINUTE_MS);
  await test.boot();
  test.advance(MINUTE_MS);
  expect((await read(id)).status).toBe('creating');
  agent.automatic = true;
  await agent.connect();
  await statusIs(renter.api, id, 'running');
});

it('one instance that cannot be timed out holds up no other', async () => {
  const [broken, fine] = [await running(), await running()];
  for (const { id } of [broken, fine]) await ask('POST', `${id}/stop`);
  // Its machine is gone from under it: whatever is done with it fails.
  test.core.platform.store.transact((tx) =>
    tx.run(query.updateTable('instances').set({ progress_at: 0 }).where('id', '=', broken.id)),
  );
  const { store } = test.core.platform;
  const transact = store.transact.bind(store);
  store.transact = (work) =>
    transact((tx) =>
      work({
        ...tx,
        run: (statement) => {
          if (statement.compile().parameters.includes(broken.id)) throw new Error('broken');
          return tx.run(statement);
        },
      }),
    );
  test.advance(30 * MINUTE_MS);
  store.transact = transact;
  expect((await read(broken.id)).status).toBe('stopping');
  expect(await read(fine.id)).toMatchObject({ status: 'running', error_code: 'stop_timed_out' });
});

describe('a release', () => {
  it('that was decided on a lost machine is done when the machine comes back', async () => {
    const { agent, id, provision } = await running();
    await ask('POST', `${id}/stop`);
    const stop = await next(agent, provision);
    await dispute('POST');
    agent.disconnect();
    await eventually('the host to be away', async () => {
      return !(await test.operator.get<{ connected: boolean }>(`/v1/operator/machines/${agent.hostId}`)).connected;
    });
    await test.operator.post(`/v1/operator/machines/${agent.hostId}/lost`);
    expect(await read(id)).toMatchObject({ status: 'stopped', gpu_release: 'pending' });
    agent.held.length = 0;
    await agent.connect();
    const release = await next(agent, stop);
    expect(release.stopped).toEqual({ releaseGpus: true });
    agent.done(release);
    await eventually('the release', async () => (await read(id))['gpus_released']);
    await dispute('DELETE');
  });

  it('is not pending any more when a stop after the dispute keeps the GPUs', async () => {
    const { agent, id, provision } = await running();
    await dispute('POST');
    await ask('POST', `${id}/stop`);
    const first = await next(agent, provision);
    expect(first.stopped).toEqual({ releaseGpus: true });
    test.advance(30 * MINUTE_MS);
    expect(await read(id)).toMatchObject({ status: 'running', gpu_release: 'pending' });
    await dispute('DELETE');
    await ask('POST', `${id}/stop`);
    const second = await next(agent, provision, first);
    expect(second.stopped).toEqual({ releaseGpus: false });
    agent.done(second);
    expect(await statusIs(renter.api, id, 'stopped')).toMatchObject({
      gpu_release: null,
      gpu_release_requested_at: null,
    });
  });

  it('is unsupported where the machine cannot: the GPUs stay', async () => {
    const { agent, id, offerId, provision } = await running();
    await agent.claim({ inventory: { ...agent.inventory, gpuReleaseSupported: false } });
    await dispute('POST');
    await ask('POST', `${id}/stop`);
    const stop = await next(agent, provision);
    expect(stop.stopped).toEqual({ releaseGpus: false });
    agent.done(stop);
    expect(await statusIs(renter.api, id, 'stopped')).toMatchObject({
      gpus_released: false,
      gpu_release: 'unsupported',
    });
    expect(await renter.api.get(`/v1/offers/${offerId}`)).toMatchObject({ state: 'unavailable' });
    await dispute('DELETE');
  });
});

it('why a start did not land stays to be read after another one that was refused, and goes when one succeeds', async () => {
  const { agent, id, provision } = await running();
  await ask('POST', `${id}/stop`);
  const stop = await next(agent, provision);
  agent.done(stop);
  await statusIs(renter.api, id, 'stopped');
  const refuse = async (code: string, ...seen: WireCommand[]) => {
    const answer = ask('POST', `${id}/start`);
    const start = await next(agent, ...seen);
    expect(await read(id)).toMatchObject({ status: 'starting', error_code: null });
    agent.refuse(start, code, 'not now');
    expect((await answer).status).toBe(409);
    return start;
  };
  const first = await refuse('GPUS_UNAVAILABLE', provision, stop);
  expect(await read(id)).toMatchObject({ error_code: 'gpus_unavailable', error_message: 'not now' });
  const second = await refuse('BUSY', provision, stop, first);
  expect(await read(id)).toMatchObject({ error_code: 'gpus_unavailable' });
  const answer = ask('POST', `${id}/start`);
  agent.done(await next(agent, provision, stop, first, second));
  await answer;
  expect(await statusIs(renter.api, id, 'running')).toMatchObject({ error_code: null, error_message: null });
});
