import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import { makePublicKey } from '../harness/keys.js';

let test: TestControlPlane;
let renter: Renter;

beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
});
afterAll(() => test.stop());

const NOWHERE = '00000000-0000-4000-8000-000000000000';

/** A request that would be accepted, to be spoilt by a test. */
async function deployable(options: Parameters<TestControlPlane['host']>[0] = {}) {
  const agent = await test.host(options);
  const body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
  return { agent, body };
}

async function refusalOf(body: unknown, api = renter.api) {
  const before = test.dump();
  const answer = await api.request<Record<string, unknown>>('POST', '/v1/instances', body);
  expect(answer.status, JSON.stringify(answer.body)).toBeGreaterThanOrEqual(400);
  expect(test.dump()).toEqual(before);
  return { status: answer.status, ...answer.body };
}

describe('a deploy is refused, and leaves nothing behind,', () => {
  it('with an unknown template', async () => {
    const { body } = await deployable();
    expect(await refusalOf({ ...body, template_id: NOWHERE })).toMatchObject({
      status: 404,
      code: 'TEMPLATE_NOT_FOUND',
    });
  });

  it('with a template that is not published, or for other hardware', async () => {
    const { body } = await deployable();
    const soon = await test.template({ coming_soon: true });
    const arm = await test.template({ arch: 'aarch64' });
    expect(await refusalOf({ ...body, template_id: soon })).toMatchObject({
      status: 422,
      code: 'TEMPLATE_COMING_SOON',
    });
    expect(await refusalOf({ ...body, template_id: arm })).toMatchObject({
      status: 422,
      code: 'TEMPLATE_ARCH_UNSUPPORTED',
    });
  });

  it('with an unknown or withdrawn offer', async () => {
    const { body } = await deployable();
    expect(await refusalOf({ ...body, offer_id: NOWHERE })).toMatchObject({ status: 409, code: 'OFFER_UNAVAILABLE' });
    await test.operator.delete(`/v1/operator/offers/${body.offer_id}`);
    expect(await refusalOf(body)).toMatchObject({ status: 409, code: 'OFFER_UNAVAILABLE' });
  });

  it('on a machine that is away, or whose Docker is', async () => {
    const { agent, body } = await deployable();
    agent.beat({ dockerAvailable: false });
    await eventually('the offer to go', async () => {
      return (await renter.api.get<{ state: string }>(`/v1/offers/${body.offer_id}`)).state === 'unavailable';
    });
    expect(await refusalOf(body)).toMatchObject({ status: 409, code: 'OFFER_UNAVAILABLE' });
  });

  it('when a virtual machine or the CUDA version does not fit', async () => {
    const { body } = await deployable({ cudaVersion: '12.10' });
    const vm = await test.template({ kind: 'vm' });
    const old = await test.template({ cuda_max: '12.9' });
    expect(await refusalOf({ ...body, template_id: vm })).toMatchObject({ status: 422, code: 'OFFER_NOT_VM_CAPABLE' });
    expect(await refusalOf({ ...body, template_id: old })).toMatchObject({
      status: 422,
      code: 'TEMPLATE_CUDA_TOO_NEW',
    });
    const newer = await test.template({ cuda_min: '12.11' });
    expect(await refusalOf({ ...body, template_id: newer })).toMatchObject({
      status: 422,
      code: 'TEMPLATE_CUDA_TOO_OLD',
      message:
        'this template needs CUDA 12.11 or newer, but the driver of the machine supports only 12.10; choose another offer',
    });
    const { items } = await renter.api.get<{ items: { id: string }[] }>(`/v1/offers?template_id=${newer}`);
    expect(items.map(({ id }) => id)).toContain(body.offer_id);
    const { fitting } = await renter.api.get<{ fitting: number }>(`/v1/offers/counts?template_id=${newer}`);
    expect(fitting).toBeLessThan(items.length);
    const range = { name: 'range', image: 'i', cuda_min: '12.10', cuda_max: '12.9' };
    expect(await renter.api.request('POST', '/v1/templates', range)).toMatchObject({
      status: 422,
      body: { code: 'VALIDATION_FAILED', message: expect.stringContaining('cuda_min') as string },
    });
  });

  it('when the disk is too large, or committed to others', async () => {
    const { body } = await deployable({ diskGb: 25 });
    expect(await refusalOf({ ...body, disk_gb: 26 })).toMatchObject({
      status: 422,
      code: 'DISK_TOO_LARGE',
      max_disk_gb: 25,
    });
    const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
    await statusIs(renter.api, id, 'running');
    const agentOffer = await test.offer(test.agents.at(-1) as never);
    expect(await refusalOf({ ...body, offer_id: agentOffer, disk_gb: 16 })).toMatchObject({
      status: 409,
      code: 'MACHINE_DISK_EXHAUSTED',
      available_disk_gb: 15,
      requested_disk_gb: 16,
    });
  });

  it('at a price above the one that it accepts', async () => {
    const { body } = await deployable();
    const costs = { gpu_per_hour_micro: 1_000_000, disk_per_hour_micro: 1_000 };
    for (const most of [{ max_gpu_per_hour_micro: 999_999 }, { max_disk_per_hour_micro: 999 }]) {
      const accepting = { max_gpu_per_hour_micro: 1_000_000, max_disk_per_hour_micro: 1_000, ...most };
      expect(await refusalOf({ ...body, ...accepting })).toMatchObject({
        status: 409,
        code: 'OFFER_TOO_EXPENSIVE',
        ...costs,
      });
    }
    const accepted = { ...body, max_gpu_per_hour_micro: 1_000_000, max_disk_per_hour_micro: 1_000 };
    const { id } = await renter.api.post<InstanceBody>('/v1/instances', accepted);
    await renter.api.delete(`/v1/instances/${id}`);
    await statusIs(renter.api, id, 'destroyed');
  });

  it("with another's SSH key", async () => {
    const { body } = await deployable();
    const other = await test.renter();
    const key = await other.api.post<{ id: string }>('/v1/ssh-keys', {
      name: 'k',
      public_key: makePublicKey('-t', 'ed25519'),
    });
    for (const ssh_key_id of [key.id, NOWHERE, 'nope']) {
      expect(await refusalOf({ ...body, ssh_key_id })).toMatchObject({ status: 404, code: 'SSH_KEY_NOT_FOUND' });
    }
  });

  it('without an hour of everything on the balance', async () => {
    const { body } = await deployable();
    const poor = await test.renter(1_000_999);
    expect(await refusalOf(body, poor.api)).toMatchObject({
      status: 402,
      code: 'INSUFFICIENT_BALANCE',
      balance_micro: 1_000_999,
      required_micro: 1_001_000,
    });
    const enough = await test.renter(1_001_000);
    expect((await enough.api.request('POST', '/v1/instances', body)).status).toBe(201);
  });

  it.each([
    [{ disk_gb: 9 }, 'disk_gb'],
    [{ disk_gb: '10' }, 'disk_gb'],
    [{ disk_gb: 20_001 }, 'disk_gb'],
    [{ offer_id: 'x' }, 'offer_id'],
    [{ label: 'x'.repeat(65) }, 'label'],
    [{ lable: 'x' }, 'lable'],
    [{ env_overrides: [{ key: 'k', value: 'x'.repeat(4097) }] }, 'env_overrides.0.value'],
    [{ env_overrides: [{ key: 'GPU_COUNT=99', value: '' }] }, 'env_overrides.0.key'],
    [{ env_overrides: Array.from({ length: 101 }, () => ({ key: 'k', value: '' })) }, 'env_overrides'],
  ])('with %j, which names %s', async (fields, path) => {
    const { body } = await deployable();
    const refusal = await refusalOf({ ...body, ...fields });
    expect(refusal).toMatchObject({ status: 422, code: 'VALIDATION_FAILED' });
    expect((refusal as unknown as { details: { path: string }[] }).details.map((detail) => detail.path)).toContain(
      path,
    );
  });
});

it('twenty-five instances are an organization’s limit', async () => {
  const agent = await test.host({ gpus: 26, diskGb: 1000 });
  const body = { offer_id: await test.offer(agent, 1, 1), template_id: await test.template(), disk_gb: 10 };
  const busy = await test.renter();
  for (let count = 0; count < 25; count++) {
    const { id } = await busy.api.post<InstanceBody>('/v1/instances', body);
    await statusIs(busy.api, id, 'running');
  }
  expect(await refusalOf(body, busy.api)).toMatchObject({ status: 409, code: 'INSTANCE_LIMIT_REACHED', limit: 25 });
});

it('each GPU is sold once, however many ask at the same time', async () => {
  const agent = await test.host({ gpus: 3 });
  const body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => renter.api.request<InstanceBody>('POST', '/v1/instances', body)),
  );
  const won = answers.filter(({ status }) => status === 201);
  expect(won).toHaveLength(3);
  expect(new Set(answers.filter(({ status }) => status !== 201).map(({ body: { code } }) => code))).toEqual(
    new Set(['OFFER_UNAVAILABLE']),
  );
  for (const { body: instance } of won) await statusIs(renter.api, instance.id, 'running');
  const used = [...agent.workloads.values()].flatMap(({ gpuUuids }) => gpuUuids);
  expect(new Set(used).size).toBe(3);
});

it('what is foreign is as unknown, byte for byte', async () => {
  const { body } = await deployable();
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  const other = await test.renter();
  const strip = (answer: { body: unknown }) => JSON.stringify({ ...(answer.body as object), request_id: '' });
  for (const [method, suffix] of [
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '/stop'],
    ['POST', '/start'],
    ['GET', '/logs'],
    ['GET', '/events'],
  ] as const) {
    const foreign = await other.api.request(method, `/v1/instances/${id}${suffix}`);
    const unknown = await other.api.request(method, `/v1/instances/${NOWHERE}${suffix}`);
    expect(foreign.status).toBe(404);
    expect(strip(foreign)).toBe(strip(unknown));
  }
});

it('says who deployed', async () => {
  const { body } = await deployable({ gpus: 3 });
  const make = (name: string, kind: string) =>
    renter.api.post<{ key: { id: string; prefix: string }; secret: string }>('/v1/api-keys', { name, kind });
  const team = await make('ci', 'team');
  const personal = await make('laptop', 'personal');
  const by = async (token: string) => test.api.as(token).post<InstanceBody>('/v1/instances', body);
  expect(await renter.api.post('/v1/instances', body)).toMatchObject({
    deployed_by: renter.email,
    deployed_via_api_key: null,
  });
  expect(await by(team.secret)).toMatchObject({
    deployed_by: `ci (${team.key.prefix}…)`,
    deployed_via_api_key: { id: team.key.id, name: 'ci', kind: 'team', prefix: team.key.prefix, revoked: false },
  });
  expect(await by(personal.secret)).toMatchObject({
    deployed_by: renter.email,
    deployed_via_api_key: { kind: 'personal' },
  });
});

it.each([
  { gpus: 8, rented: 1, cpu_cores: 2, memory_mb: 8_192 },
  { gpus: 8, rented: 3, cpu_cores: 6, memory_mb: 24_576 },
  { gpus: 64, rented: 1, cpu_cores: 0.25, memory_mb: 1_024 },
  { gpus: 7, rented: 1, cpu_cores: 2.285, memory_mb: 9_362 },
  { gpus: 3, rented: 3, cpu_cores: 16, memory_mb: 65_536 },
])(
  'an offer of $rented of $gpus GPUs says which processors and memory its instances have, as the host is told',
  async ({ gpus, rented, cpu_cores, memory_mb }) => {
    const agent = await test.host({ gpus });
    const offer_id = await test.offer(agent, rented);
    const said = { cpu_cores, memory_mb, machine: { cpu_cores: 16, memory_mb: 65_536 } };
    const { items } = await renter.api.get<{ items: { id: string }[] }>('/v1/offers');
    expect(items.find(({ id }) => id === offer_id)).toMatchObject(said);
    expect(await renter.api.get(`/v1/offers/${offer_id}`)).toMatchObject(said);
    const { items: operated } = await test.operator.get<{ items: { id: string }[] }>('/v1/operator/offers');
    expect(operated.find(({ id }) => id === offer_id)).toMatchObject(said);

    const body = { offer_id, template_id: await test.template(), disk_gb: 10 };
    const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
    await statusIs(renter.api, id, 'running');
    const spec = agent.received.find(({ instanceId }) => instanceId === id)?.running?.spec;
    expect(spec).toMatchObject({ cpuMillis: Math.round(cpu_cores * 1_000), memoryMb: memory_mb });
    await renter.api.delete(`/v1/instances/${id}`);
  },
);

describe('an Idempotency-Key', () => {
  const send = (body: unknown, key: string, api = renter.api) =>
    api.request<InstanceBody>('POST', '/v1/instances', body, { 'Idempotency-Key': key });

  it('makes one deploy of a request and its repetitions, for a day', async () => {
    const { body } = await deployable({ gpus: 3 });
    const first = await send(body, 'k1');
    expect(first.status).toBe(201);
    await statusIs(renter.api, first.body.id, 'running');
    const again = await send({ ...body, label: null }, 'k1');
    expect(again).toMatchObject({ status: 201, body: { id: first.body.id, status: 'running' } });
    expect([first, again].map(({ headers }) => headers.get('idempotent-replayed'))).toEqual([null, 'true']);
    test.clock.advance(86_400_000);
    test.agents.at(-1)?.beat();
    await eventually('the offer', async () => {
      return (await renter.api.get<{ state: string }>(`/v1/offers/${body.offer_id}`)).state === 'available';
    });
    expect((await send(body, 'k1')).body.id).not.toBe(first.body.id);
  });

  it('stands for one request of one organization, and remembers no refusal', async () => {
    const { body } = await deployable({ gpus: 3 });
    expect((await send({ ...body, template_id: NOWHERE }, 'k2')).status).toBe(404);
    const first = await send(body, 'k2');
    expect(first.status).toBe(201);
    await statusIs(renter.api, first.body.id, 'running');
    const before = test.dump();
    const reused = await send({ ...body, disk_gb: 11 }, 'k2');
    expect(reused).toMatchObject({ status: 409, body: { code: 'IDEMPOTENCY_KEY_REUSED' } });
    expect(test.dump()).toEqual(before);
    const other = await test.renter();
    const theirs = await send(body, 'k2', other.api);
    expect(theirs.status).toBe(201);
    expect(theirs.body.id).not.toBe(first.body.id);
  });
});
