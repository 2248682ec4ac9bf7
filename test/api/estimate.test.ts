import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ApiClient, InstanceBody } from '../harness/api-client.js';
import { query, sql, statement } from '../../control-plane/store/sql.js';
import { NOWHERE, World, type DeployBody } from '../contract/world.js';
import type { FakeAgent } from '../harness/fake-agent.js';
import { statusIs, type Renter } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import { DISK_MICRO, GPU_MICRO, HOUR_MS, makePoor, type Poor } from '../harness/poor.js';

interface Estimate {
  gpu_per_hour_micro: number | null;
  disk_per_hour_micro: number | null;
  burn_per_hour_micro: number | null;
  required_micro: number | null;
  balance_micro: number;
  balance_lasts_until: string | null;
  refusals: { code: string; message: string; [field: string]: unknown }[];
  warning: string | null;
  driver_warning: string | null;
}

let world: World;
let body: DeployBody;
beforeAll(async () => {
  world = await World.make();
  ({ body } = await world.host({ gpus: 4, diskGb: 100 }));
});
afterAll(() => world.stop());

/** The answer; the store is as it was. */
async function estimate(request: object, api = world.admin.api, { test } = world): Promise<Estimate> {
  const before = test.dump();
  const answer = await api.request<Estimate>('POST', '/v1/instances/estimate', request);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  expect(test.dump()).toEqual(before);
  return answer.body;
}
const codesOf = ({ refusals }: Estimate) => refusals.map(({ code }) => code);
const organizationOf = (api: ApiClient) =>
  api.get<{
    balance_micro: number;
    burn_per_hour_micro: number;
    charged_per_hour_micro: number;
    lasts_until: string | null;
  }>('/v1/orgs/current');
const change = (text: string) => world.test.core.platform.store.transact((tx) => tx.run(statement(sql.raw(text))));
const dispute = (method: string, { organizationId }: Renter) =>
  world.test.operator.request(method, `/v1/operator/organizations/${organizationId}/dispute`);

describe('an estimate of what would be accepted', () => {
  it('says what the deploy then costs, and how long the balance then lasts', async () => {
    const renter = await world.test.renter(10_000_000);
    await world.stopped(body, renter.api);
    const first = await world.running({ ...body, disk_gb: 30 }, renter.api);
    const said = await estimate({ ...body, disk_gb: 20 }, renter.api);
    const deployed = await world.running({ ...body, disk_gb: 20 }, renter.api);
    const { lasts_until, ...organization } = await organizationOf(renter.api);
    const { balance_micro, burn_per_hour_micro, charged_per_hour_micro } = organization;
    expect(said).toEqual({
      gpu_per_hour_micro: deployed['price_per_hour_micro'],
      disk_per_hour_micro: 20 * 100,
      burn_per_hour_micro,
      charged_per_hour_micro,
      required_micro: burn_per_hour_micro,
      balance_micro,
      balance_lasts_until: lasts_until,
      refusals: [],
      warning: null,
      driver_warning: null,
    });
    expect(burn_per_hour_micro).toBe(2 * 1_000_000 + 60 * 100);
    // The disks of the two that run are not charged: 10 GB of the one that is stopped are.
    expect(charged_per_hour_micro).toBe(2 * 1_000_000 + 10 * 100);
    for (const { id } of [first, deployed]) {
      await renter.api.delete(`/v1/instances/${id}`);
      await statusIs(renter.api, id, 'destroyed');
    }
  });

  it('counts what is on its way: a deploy before it, and a stop', async () => {
    const renter = await world.test.renter(10_000_000);
    const { agent, body: here } = await world.host({ gpus: 4 });
    const stopping = await world.running(here, renter.api);
    agent.automatic = false;
    await renter.api.post(`/v1/instances/${stopping.id}/stop`);
    await renter.api.post('/v1/instances', here);
    const perHour = 1_000_000 + 1_000 + 1_000_000;
    const { balance_lasts_until } = await estimate(here, renter.api);
    const lasts = Date.parse(balance_lasts_until ?? '') - world.test.clock.now();
    expect(Math.abs(lasts - (10_000_000 / perHour) * HOUR_MS)).toBeLessThan(10);
  });

  it('says that the balance never runs out where nothing is charged', async () => {
    const { agent } = await world.host();
    const offer_id = await world.test.offer(agent, 1, 0);
    const broke = await world.test.renter(1_000);
    const said = await estimate({ ...body, offer_id }, broke.api);
    expect(said).toMatchObject({ gpu_per_hour_micro: 0, balance_lasts_until: null, refusals: [] });
  });

  it('reserves nothing, and takes no notice of an idempotency key', async () => {
    const { body: here } = await world.host({ gpus: 1 });
    const headers = { 'Idempotency-Key': 'of an estimate' };
    for (let time = 0; time < 2; time++)
      expect(await world.admin.api.request('POST', '/v1/instances/estimate', here, headers)).toMatchObject({
        status: 200,
        body: { refusals: [] },
      });
    const deployed = await world.admin.api.request('POST', '/v1/instances', { ...here, disk_gb: 11 }, headers);
    expect(deployed.status).toBe(201);
    await statusIs(world.admin.api, (deployed.body as InstanceBody).id, 'running');
  });

  it('is for API keys, too, each with the SSH keys that it can attach', async () => {
    const { api } = await world.key('team');
    expect(codesOf(await estimate({ ...body, ssh_key_id: world.sshKeyId }, api))).toEqual([]);
    const foreign = await world.sshKey(world.stranger);
    expect(codesOf(await estimate({ ...body, ssh_key_id: foreign }, api))).toEqual(['SSH_KEY_NOT_FOUND']);
  });

  it('warns of an image that was too slow, with which the deploy would fail at once', async () => {
    const { agent, body: here } = await world.host({ gpus: 2, automatic: false });
    const slow = { ...here, template_id: await world.test.template({ image: 'slow:1' }) };
    const { id } = await world.admin.api.post<InstanceBody>('/v1/instances', slow);
    const command = await eventually('the command', () => agent.held.find(({ instanceId }) => instanceId === id));
    agent.fail(command, 'IMAGE_TOO_SLOW', 'too slow');
    await statusIs(world.admin.api, id, 'error');
    const { refusals, warning } = await estimate(slow);
    expect(refusals).toEqual([]);
    const failed = await world.admin.api.post<InstanceBody>('/v1/instances', slow);
    const { status, error_message } = await world.admin.api.get<InstanceBody>(`/v1/instances/${failed.id}`);
    expect([status, error_message]).toEqual(['error', warning]);
  });
});

describe('an estimate of a start that will probably fail', () => {
  const [FIRST, SECOND] = ['a', 'b'].map((digit) => `sha256:${digit.repeat(64)}`) as [string, string];
  const NEEDS = 'cuda>=12.8 brand=tesla,driver>=470,driver<471';
  const WARNS =
    'the image requires CUDA 12.8 or newer, but the driver of the machine supports only up to 12.4: the start will probably fail; choose another offer, or an image for another CUDA version';
  const rows = () => {
    const all = query.selectFrom('image_requirements').select('image').orderBy('image');
    return world.test.core.platform.store.transact((tx) =>
      tx.all(all.where('organization_id', '=', renter.organizationId)),
    );
  };
  let renter: Renter;
  beforeEach(async () => {
    renter = await world.test.renter(100_000_000);
  });
  const warned = async (deploy: object, by = renter) => (await estimate(deploy, by.api)).driver_warning;

  const say = (agent: FakeAgent, instanceId: string, pulled: object) =>
    agent.say({ progress: { instanceId, kind: 'pulled', message: 'pulled', pulled } });

  /** Has a machine pull the image for a deploy that fails, and say this of it. Returns the id of the instance. */
  async function pulls({ agent, body: here }: { agent: FakeAgent; body: DeployBody }, pulled: object, by = renter) {
    const { id } = await by.api.post<InstanceBody>('/v1/instances', here);
    const command = await eventually('the command', () => agent.held.find(({ instanceId }) => instanceId === id));
    say(agent, id, pulled);
    agent.fail(command, 'CONTAINER_FAILED', 'unsatisfied condition');
    await statusIs(by.api, id, 'error');
    world.test.clock.advance(1);
    return id;
  }
  const hostWith = async (image: string) => {
    const host = await world.host({ gpus: 8, automatic: false });
    return { ...host, body: { ...host.body, template_id: await world.test.template({ image }) } };
  };

  it('warns on any machine whose driver is too old, from the first pull on, and refuses nothing', async () => {
    const here = await hostWith('team/cuda:1');
    expect(await warned(here.body)).toBeNull();
    await pulls(here, { digest: FIRST, requirements: [NEEDS] });
    const [other, newer] = [await world.host(), await world.host({ cudaVersion: '12.8' })];
    const { template_id } = here.body;
    expect(await estimate(here.body, renter.api)).toMatchObject({ refusals: [], warning: null, driver_warning: WARNS });
    expect(await warned({ ...other.body, template_id })).toBe(WARNS);
    expect(await warned({ ...newer.body, template_id })).toBeNull();
    expect(
      await warned({ ...here.body, template_id: await world.test.template({ image: 'docker.io/team/cuda:1' }) }),
    ).toBe(WARNS);
    expect(await warned({ ...here.body, template_id: await world.test.template({ image: 'team/cuda:2' }) })).toBeNull();
    const pinned = await world.test.template({ image: `team/cuda@${FIRST}` });
    expect(await warned({ ...here.body, template_id: pinned })).toBe(WARNS);
    await pulls(here, { digest: SECOND, requirements: [] });
    expect(await warned(here.body)).toBeNull();
  });

  it('believes no machine for an organization that has not deployed on it, nor against another machine', async () => {
    const [here, liar] = [await hostWith('team/cuda:1'), await hostWith('team/cuda:1')];
    const stranger = await world.test.renter(100_000_000);
    await pulls(liar, { digest: FIRST, requirements: ['cuda>=99.0'] }, stranger);
    expect(await warned(liar.body, stranger)).toContain('CUDA 99.0');
    expect(await warned(liar.body)).toBeNull();
    await pulls(here, { digest: FIRST, requirements: [NEEDS] });
    await pulls(liar, { digest: FIRST, requirements: ['cuda>=99.0'] });
    expect(await warned(here.body)).toBeNull();
    await pulls(liar, { digest: SECOND, requirements: ['cuda>=99.0'] });
    expect(await warned(here.body)).toBe(WARNS);
    expect(await warned(liar.body)).toContain('CUDA 99.0');
  });

  it('takes nothing of an instance that the machine is not creating, of another digest, or too much', async () => {
    const here = await hostWith(`team/cuda@${FIRST}`);
    const id = await pulls(here, { digest: SECOND, requirements: [NEEDS] });
    say(here.agent, id, { digest: FIRST, requirements: [NEEDS] });
    await here.agent.roundTrip();
    for (const digest of ['sha256:a', `${FIRST}\n`]) await pulls(here, { digest, requirements: [NEEDS] });
    for (const requirements of [[`${NEEDS}\n`], ['x'.repeat(4_097)], Array(17).fill('cuda>=1')])
      await pulls(here, { digest: FIRST, requirements });
    expect(rows()).toEqual([]);
  });

  it('remembers a hundred images of an organization, and each for ninety days after its last pull', async () => {
    const here = await hostWith('team/cuda:1');
    const values = Array.from({ length: 100 }, (_, index) => ({
      organization_id: renter.organizationId,
      image: `old-${String(index).padStart(3, '0')}`,
      digest: SECOND,
      machine_id: here.agent.hostId,
      requirements: '',
      told_at: world.test.clock.now() - 100 + index,
    }));
    world.test.core.platform.store.transact((tx) => tx.run(query.insertInto('image_requirements').values(values)));
    await pulls(here, { digest: FIRST, requirements: [NEEDS] });
    expect(rows().map(({ image }) => image)).toEqual([
      'docker.io/team/cuda:1',
      ...values.slice(1).map(({ image }) => image),
    ]);
    change(`UPDATE image_requirements SET told_at = told_at - ${90 * 24 * HOUR_MS} WHERE image <> 'old-099'`);
    world.test.advance(61_000);
    expect(rows()).toEqual([{ image: 'old-099' }]);
  });
});

describe('an estimate while a settlement is due', () => {
  /** With nothing else that time could move. */
  let due: World;
  let poor: Poor;
  beforeEach(async () => {
    due = await World.make();
    poor = await makePoor(due.test, due.templateId);
  });
  afterEach(() => due.stop());

  /** Less than two minutes pass; the host says that the workload has run, and nobody settles it. */
  async function pass(ms: number): Promise<void> {
    const { store } = due.test.core.platform;
    store.transact((tx) => tx.run(query.updateTable('organizations').set({ settle_at: null })));
    due.test.clock.advance(ms);
    poor.agent.beat();
    const attested = query.selectFrom('meter_intervals').select('attested_to').where('closed_at', 'is', null);
    await eventually('the heartbeat', () =>
      store.transact((tx) => tx.all(attested).every(({ attested_to }) => attested_to === tx.now)),
    );
  }

  it('knows the balance as the settlement would leave it, and leaves that to others', async () => {
    await pass(90_000);
    const request = { offer_id: poor.offerId, template_id: due.templateId, disk_gb: 10 };
    const said = await estimate(request, poor.renter.api, due);
    const used = GPU_MICRO / 40;
    expect(said.balance_micro).toBe(2 * GPU_MICRO - used);
    expect(said.balance_lasts_until).toBe(new Date(due.test.clock.now() + (2 * HOUR_MS - 90_000) / 2).toISOString());
    expect(await poor.balance()).toBe(2 * GPU_MICRO);
    // A credit settles first.
    await poor.credit(1);
    expect(await poor.balance()).toBe(2 * GPU_MICRO - used + 1);
  });

  it('knows that running instances will be stopped where the balance is used up', async () => {
    const { api } = poor.renter;
    due.test.setBalance(poor.renter.organizationId, GPU_MICRO / 60);
    await pass(90_000);
    const { body: other } = await due.host();
    const said = await estimate(other, api, due);
    const required_micro = DISK_MICRO + 1_000_000 + 1_000;
    expect(said).toMatchObject({
      burn_per_hour_micro: required_micro,
      balance_micro: 0,
      balance_lasts_until: new Date(due.test.clock.now()).toISOString(),
      refusals: [{ code: 'INSUFFICIENT_BALANCE', balance_micro: 0, required_micro }],
    });
    const refused = await due.refused(api, 'POST', '/v1/instances', other);
    expect(refused).toMatchObject(said.refusals[0] ?? {});
  });
});

describe('an estimate of what would be refused', () => {
  it('names every refusal of API rule 18, in its order, each with its fields', async () => {
    const renter = await world.test.renter(0);
    const { agent, body: here } = await world.host({ gpus: 1, diskGb: 40, cudaVersion: '12.4' });
    const { id } = await world.running(here);
    const shared = { name: 'theirs', image: 'private:1', visibility: 'public', cuda_max: '11.8' };
    const registry = { username: 'u', password: 'p' };
    const { id: template_id } = await world.stranger.api.post<{ id: string }>('/v1/templates', { ...shared, registry });
    change(`UPDATE templates SET coming_soon = 1, arch = 'aarch64', kind = 'vm' WHERE id = '${template_id}'`);
    const starts_at = new Date(world.test.clock.now()).toISOString();
    const window = { starts_at, ends_at: new Date(world.test.clock.now() + HOUR_MS).toISOString() };
    await world.test.operator.request('PUT', `/v1/operator/machines/${agent.hostId}/maintenance`, window);
    await dispute('POST', renter);
    fill(renter, id);
    const organization = `/v1/operator/organizations/${renter.organizationId}`;
    await world.test.operator.post(`${organization}/suspend`, { reason: 'abuse' });
    const ssh_key_id = await world.sshKey(world.stranger);
    const offer_id = await world.test.offer(agent, 1, 3_000_000);
    const asked = { max_gpu_per_hour_micro: 2_999_999 };
    const said = await estimate({ ...asked, offer_id, template_id, disk_gb: 50, ssh_key_id }, renter.api);
    expect(said.refusals).toMatchObject([
      { code: 'ORGANIZATION_SUSPENDED', reason: 'abuse' },
      { code: 'TEMPLATE_COMING_SOON' },
      { code: 'TEMPLATE_ARCH_UNSUPPORTED' },
      { code: 'TEMPLATE_REQUIRES_OWNER' },
      { code: 'OFFER_UNAVAILABLE' },
      { code: 'OFFER_TOO_EXPENSIVE', gpu_per_hour_micro: 3_000_000, disk_per_hour_micro: 5_000 },
      { code: 'OFFER_NOT_VM_CAPABLE' },
      { code: 'TEMPLATE_CUDA_TOO_NEW' },
      { code: 'DISK_TOO_LARGE', max_disk_gb: 40 },
      { code: 'SSH_KEY_NOT_FOUND' },
      { code: 'MACHINE_IN_MAINTENANCE', next_maintenance: starts_at },
      { code: 'MACHINE_DISK_EXHAUSTED', available_disk_gb: 0, requested_disk_gb: 50 },
      { code: 'INSTANCE_LIMIT_REACHED', limit: 25 },
      { code: 'PAYMENTS_FROZEN' },
      { code: 'INSUFFICIENT_BALANCE', balance_micro: 0, required_micro: 3_005_000 + 25_000 },
    ]);
    expect(said.refusals.at(-1)?.message).toMatch(/^you need \$3\.03, .*; add \$3\.03 or more/);
    // A person reads them, who knows no routes.
    expect(said.refusals.filter(({ message }) => message.includes('/v1'))).toEqual([]);
    expect(said).toMatchObject({ gpu_per_hour_micro: 3_000_000, disk_per_hour_micro: 5_000 });
    expect(said.refusals.every(({ message }) => message.length > 20)).toBe(true);
  });

  /** Gives a renter 25 stopped instances that are like this one. */
  function fill({ organizationId }: Renter, like: string): void {
    world.test.core.platform.store.transact((tx) => {
      const values: Record<string, string> = {
        id: "printf('00000000-0000-4000-9000-%012d', i)",
        organization_id: `'${organizationId}'`,
        status: "'stopped'",
      };
      const columns = tx.all(statement<{ name: string }>(sql`SELECT name FROM pragma_table_info('instances')`));
      const copied = columns.map(({ name }) => values[name] ?? name).join(', ');
      const numbers = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 25)';
      const rows = `SELECT ${copied} FROM n, (SELECT * FROM instances WHERE id = '${like}')`;
      tx.run(statement(sql.raw(`${numbers} INSERT INTO instances ${rows}`)));
    });
  }

  it('leaves out what cannot be said of an offer or a template that is not there', async () => {
    const renter = await world.test.renter(0);
    const nothing = { offer_id: NOWHERE, template_id: NOWHERE, disk_gb: 20_000, ssh_key_id: NOWHERE };
    await dispute('POST', renter);
    expect(await estimate(nothing, renter.api)).toMatchObject({
      gpu_per_hour_micro: null,
      disk_per_hour_micro: null,
      burn_per_hour_micro: null,
      required_micro: null,
      balance_micro: 0,
      balance_lasts_until: null,
      refusals: [
        { code: 'TEMPLATE_NOT_FOUND' },
        { code: 'OFFER_UNAVAILABLE' },
        { code: 'SSH_KEY_NOT_FOUND' },
        { code: 'PAYMENTS_FROZEN' },
      ],
      warning: null,
      driver_warning: null,
    });
    const { offer_id } = (await world.host()).body;
    expect(codesOf(await estimate({ ...nothing, offer_id }, renter.api))).toEqual([
      'TEMPLATE_NOT_FOUND',
      'DISK_TOO_LARGE',
      'SSH_KEY_NOT_FOUND',
      'MACHINE_DISK_EXHAUSTED',
      'PAYMENTS_FROZEN',
      'INSUFFICIENT_BALANCE',
    ]);
  });

  it('says of an offer whose machine was removed that it cannot be pinned, and nothing else of its state', async () => {
    const { agent, body: here } = await world.host();
    await world.test.operator.delete(`/v1/operator/machines/${agent.hostId}`);
    expect(codesOf(await estimate(here))).toEqual(['OFFER_NOT_PINNABLE']);
  });

  it('shows no foreign template and no foreign SSH key', async () => {
    const foreign = await world.stranger.api.post<{ id: string }>('/v1/templates', { name: 'theirs', image: 'i' });
    const ssh_key_id = await world.sshKey(world.stranger);
    const of = (template_id: string, key: string) => estimate({ ...body, template_id, ssh_key_id: key });
    expect(await of(foreign.id, ssh_key_id)).toEqual(await of(NOWHERE, NOWHERE));
  });
});

it('a body that no deploy accepts is refused like that of a deploy', async () => {
  const past = { stop_at: '2020-01-01T00:00:00Z' };
  for (const fields of [{ disk_gb: 9 }, { offer_id: 'x' }, { dry_run: true }, { label: 'x'.repeat(65) }, past]) {
    const [said, deployed] = [
      await world.refused(world.admin.api, 'POST', '/v1/instances/estimate', { ...body, ...fields }),
      await world.refused(world.admin.api, 'POST', '/v1/instances', { ...body, ...fields }),
    ];
    expect({ ...said, request_id: '' }).toEqual({ ...deployed, request_id: '' });
  }
  const long = { ...body, env_overrides: [{ key: 'K', value: 'x'.repeat(7 * 1024 * 1024) }] };
  expect(await world.admin.api.request('POST', '/v1/instances/estimate', long)).toMatchObject({ status: 413 });
});
