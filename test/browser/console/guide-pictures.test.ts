import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { HOUR_MS } from '../../../shared/time.js';
import { eventually } from '../../../scripts/eventually.js';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import { statusIs, type Renter } from '../../harness/control-plane.js';
import { FakeAgent } from '../../harness/fake-agent.js';
import { makePublicKey } from '../../harness/keys.js';
import { NOON } from '../../harness/manual-clock.js';

/** Where the pictures of README and guides are made; nowhere: they are not made. See docs/dev/console.md. */
const FOLDER = process.env['TEST_SCREENSHOTS'];
const DAYS = 9;
/** For how long the newest instances have run, in hours. */
const RECENT = 0.7;
/** Each time that passes takes a minute more. */
const PAST_MS = DAYS * (24 * HOUR_MS + 120_000) + RECENT * HOUR_MS + 60_000;

interface Host {
  name: string;
  model: string;
  memoryMb: number;
  gpus: number;
  priceMicro: number;
}
const HOSTS: readonly Host[] = [
  { name: 'amber', model: 'H100 80GB HBM3', memoryMb: 81_920, gpus: 8, priceMicro: 2_390_000 },
  { name: 'birch', model: 'L40S', memoryMb: 46_080, gpus: 8, priceMicro: 890_000 },
  { name: 'cedar', model: 'GeForce RTX 4090', memoryMb: 24_576, gpus: 4, priceMicro: 440_000 },
];

describe.skipIf(FOLDER === undefined)('the pictures of README and guides', () => {
  let test: TestConsole;
  let renter: Renter;
  let operator: Renter;
  let running = '';
  let template = '';
  const offers: string[] = [];
  const agents: FakeAgent[] = [];

  /** Time passes without the control plane; then each host says what ran. */
  async function pass(hours: number): Promise<void> {
    for (const agent of agents) agent.disconnect();
    test.control.clock.advance(hours * HOUR_MS);
    for (const agent of agents) await agent.connect();
    for (let second = 0; second < 60; second++) {
      test.control.advance(1_000);
      for (const agent of agents) agent.beat();
      await nextTurn();
    }
  }

  async function enroll(token: string, { name, model, memoryMb, gpus }: Host): Promise<FakeAgent> {
    const given = { model, memoryMb, healthy: true, reason: '' };
    const givenGpus = Array.from({ length: gpus }, (_, index) => ({ uuid: `GPU-${randomUUID()}`, index, ...given }));
    const now = () => test.control.clock.monotonic();
    const agent = await FakeAgent.enroll(test.control.grpcAddress, token, { name, givenGpus, diskGb: 7_600, now });
    const facts = { region: 'Frankfurt', cpuModel: 'EPYC 9354', cpuCores: 64, memoryMb: 524_288, cudaVersion: '12.8' };
    Object.assign(agent.inventory, facts);
    test.control.agents.push(agent);
    agents.push(agent);
    await agent.connect();
    return agent;
  }

  async function deploy(who: Renter, offer: number, label: string): Promise<string> {
    const body = { offer_id: offers[offer], template_id: template, disk_gb: 200, label };
    const { id } = await who.api.post<{ id: string }>('/v1/instances', body);
    await statusIs(who.api, id, 'running');
    return id;
  }

  async function signUp(name: string, organization: string): Promise<Renter> {
    const email = `${name.toLowerCase()}@example.com`;
    const account = await test.control.api.post<{ token: string; user: { id: string }; organization: { id: string } }>(
      ...(['/v1/auth/sign-up', { email, password: 'a long password', name }] as const),
    );
    const api = test.control.api.as(account.token);
    await api.request('PATCH', '/v1/orgs/current', { name: organization });
    return { api, email, userId: account.user.id, organizationId: account.organization.id };
  }

  const credit = ({ organizationId }: Renter, amount_micro: number) =>
    test.control.operator.post(`/v1/operator/organizations/${organizationId}/credits`, {
      amount_micro,
      reason: 'paid',
    });

  beforeAll(async () => {
    test = await TestConsole.start({ at: NOON - PAST_MS });
    for (const host of HOSTS) {
      const agent = await enroll(await test.control.enrollmentToken(), host);
      offers.push(await test.control.offer(agent, 1, host.priceMicro));
    }
    offers.push(await test.control.offer(agents[0] ?? test.control.lastAgent, 2, 4_500_000));
    template = await test.control.template({ name: 'PyTorch', mode: ['ssh', 'jupyter'], recommended: true });
    operator = await signUp('Olive', 'Example GPUs');
    test.control.makeOperator(operator.userId);
    renter = await signUp('Ada', 'Ada Research');
    await credit(renter, 600_000_000);
    await renter.api.post('/v1/ssh-keys', { name: 'laptop', public_key: makePublicKey('-t', 'ed25519') });
    const other = await signUp('Lin', 'Lin Studio');
    await credit(other, 2_000_000_000);
    await deploy(other, 3, 'pretrain');
    await deploy(other, 2, 'render');
    for (let day = 0; day < DAYS; day++) {
      const id = await deploy(renter, day % 3, `run-${day + 1}`);
      await pass(4 + ((day * 5) % 13));
      await renter.api.delete(`/v1/instances/${id}`);
      await statusIs(renter.api, id, 'destroyed');
      await pass(20 - ((day * 5) % 13));
    }
    running = await deploy(renter, 0, 'fine-tune');
    await deploy(renter, 1, 'evaluate');
    await pass(RECENT);
  });
  afterAll(() => test.stop());

  async function open(who: Renter, path: string): Promise<ConsoleWindow> {
    const window = await test.open(who, { width: 1_200, height: 720 });
    await window.goTo(path);
    return window;
  }

  async function picture(window: ConsoleWindow, name: string, height = 720): Promise<void> {
    await window.page.setViewportSize({ width: 1_200, height });
    await window.page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))');
    await window.page.screenshot({ path: join(FOLDER ?? '', `guide-${name}.png`) });
    await window.close();
  }

  it('for renters', async () => {
    const market = await open(renter, '/market');
    await market.page.getByText('amber').first().waitFor();
    await picture(market, 'market', 860);

    const deploying = await open(renter, `/deploy?offer=${offers[0]}&template=${template}`);
    await deploying.page.getByLabel('Label', { exact: true }).fill('train');
    await deploying.page.getByLabel('Size in GB', { exact: true }).fill('200');
    await deploying.page.waitForSelector('aside button:enabled');
    await picture(deploying, 'deploy', 860);

    const instance = await open(renter, `/instances/${running}`);
    await instance.page.waitForSelector('text=the workload is up');
    await picture(instance, 'instance', 640);

    const billing = await open(renter, '/billing');
    await billing.page.waitForSelector('canvas');
    await picture(billing, 'billing', 700);
  });

  it('for operators', async () => {
    const [amber, birch, cedar] = agents as [FakeAgent, FakeAgent, FakeAgent];
    const [sick] = birch.inventory['gpus'] as Record<string, unknown>[];
    Object.assign(sick ?? {}, { healthy: false, reason: 'XID 79: the GPU has fallen off the bus' });
    birch.beat();
    cedar.disconnect();
    const isAway = async () =>
      !(await test.control.operator.get<{ connected: boolean }>(`/v1/operator/machines/${cedar.hostId}`)).connected;
    await eventually('the machine to be away', isAway);

    const overview = await open(operator, '/operator');
    for (const name of ['birch', 'cedar'])
      await overview.page.getByRole('listitem').filter({ hasText: name }).waitFor();
    await picture(overview, 'overview', 900);

    const machine = await open(operator, `/operator/machines/${amber.hostId}`);
    await machine.page.getByText('Ada Research').first().waitFor();
    await picture(machine, 'machine', 900);

    const adding = await open(operator, '/operator/machines/new');
    await adding.page.getByRole('button', { name: 'Make the line to paste' }).click();
    await adding.page.getByLabel('Address that hosts dial').fill('gpurent.example.com:8090');
    const line = await adding.page.getByLabel('Line to paste').innerText();
    const [token = ''] = /enr_\S+/.exec(line) ?? [];
    await enroll(token, { name: 'dogwood', model: 'H100 80GB HBM3', memoryMb: 81_920, gpus: 8, priceMicro: 0 });
    await adding.page.getByText('dogwood').first().waitFor();
    await picture(adding, 'add-machine', 860);
  });
});
