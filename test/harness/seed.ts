import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { HOUR_MS } from '../../shared/time.js';
import { createControlPlane } from '../../control-plane/app.js';
import { parseConfig } from '../../control-plane/config.js';
import { connect, type Gpurent, type Instance, type TemplateOfOperator } from '../../client/api/index.js';
import { silentLogger } from '../../shared/logger.js';
import { eventually } from '../../scripts/eventually.js';
import { FakeAgent } from './fake-agent.js';
import { makePublicKey } from './keys.js';
import { ManualClock } from './manual-clock.js';

const DAYS = 10;
const CREDIT_MICRO = 500_000_000;
const OPERATOR = { email: 'operator@localhost.test', password: randomBytes(12).toString('hex') };
const ORGANIZATIONS = ['renter', 'lab', 'studio'];
const GPUS = 8;
const TEMPLATES: TemplateOfOperator[] = [
  { name: 'Shell', image: 'debian:bookworm', mode: ['ssh'], recommended: true },
  { name: 'Notebook', image: 'jupyter/base-notebook:latest', mode: ['ssh', 'jupyter'], recommended: true },
  { name: 'Batch', image: 'busybox:1', mode: [], command: ['true'] },
];

const { values: options } = parseArgs({ options: { folder: { type: 'string', default: '.local/dev' } } });
const folder = options.folder;
const database = join(folder, 'gpurent.db');

/** A marketplace of ten days, as `npm run dev` serves it, made by the control plane itself on a clock that is moved. */
class Past {
  readonly clock = new ManualClock(Date.now() - DAYS * 24 * HOUR_MS);
  private readonly controlPlane = createControlPlane(
    parseConfig({
      GPURENT_DATABASE: database,
      GPURENT_HTTP_ADDRESS: '127.0.0.1:0',
      GPURENT_GRPC_ADDRESS: '127.0.0.1:0',
    }),
    silentLogger,
    { clock: this.clock },
  );
  readonly agents: FakeAgent[] = [];
  private url = '';
  private operatorToken = '';
  private grpc = '';

  async begin(): Promise<void> {
    await this.controlPlane.createOperator(OPERATOR.email, OPERATOR.password);
    const { http, grpc } = await this.controlPlane.start({ heartbeat: false });
    this.grpc = grpc;
    this.url = `http://${http}`;
    this.operatorToken = (await this.connect().post('/v1/auth/sign-in', { body: OPERATOR })).token;
  }

  connect(token?: string): Gpurent {
    return connect({ url: this.url, ...(token !== undefined && { token }) });
  }

  get operator(): Gpurent {
    return this.connect(this.operatorToken);
  }

  async host(name: string): Promise<FakeAgent> {
    const { token } = await this.operator.post('/v1/operator/enrollment-tokens', { body: {} });
    const agent = await FakeAgent.enroll(this.grpc, token, { name, gpus: GPUS, now: () => this.clock.now() });
    this.agents.push(agent);
    await agent.connect();
    return agent;
  }

  /** Hosts say afterwards what ran meanwhile, as after a day without a control plane. */
  async pass(hours: number): Promise<void> {
    for (const agent of this.agents) agent.disconnect();
    this.clock.advance(hours * HOUR_MS);
    for (const agent of this.agents) await agent.connect();
    for (let second = 0; second < 60; second++) {
      this.clock.advance(1_000);
      for (const agent of this.agents) agent.beat();
      await nextTurn();
      this.controlPlane.workers.runAll();
    }
  }

  async end(): Promise<void> {
    for (const agent of this.agents) agent.close();
    await this.controlPlane.stop();
  }
}

class Organization {
  sshKeyId = '';

  private constructor(
    readonly name: string,
    readonly account: { email: string; password: string },
    readonly api: Gpurent,
  ) {}

  static async found(past: Past, name: string): Promise<Organization> {
    const account = { email: `${name}@localhost.test`, password: randomBytes(12).toString('hex') };
    const made = await past.connect().post('/v1/auth/sign-up', { body: { ...account, name } });
    if (!('token' in made)) throw new Error('the control plane mails links');
    await past.operator.post('/v1/operator/organizations/{id}/credits', {
      params: { path: { id: made.organization?.id ?? '' } },
      body: { amount_micro: CREDIT_MICRO, reason: 'to begin with' },
    });
    const organization = new Organization(name, account, past.connect(made.token));
    const body = { name: 'laptop', public_key: makePublicKey('-t', 'ed25519') };
    organization.sshKeyId = (await organization.api.post('/v1/ssh-keys', { body })).id;
    return organization;
  }

  async deploy(offerId: string, templateId: string, label: string): Promise<string> {
    const body = { offer_id: offerId, template_id: templateId, disk_gb: 50, label, ssh_key_id: this.sshKeyId };
    return (await this.api.post('/v1/instances', { body })).id;
  }

  async running(offerId: string, templateId: string, label: string): Promise<string> {
    const id = await this.deploy(offerId, templateId, label);
    await this.statusIs(id, 'running');
    return id;
  }

  async stop(id: string): Promise<void> {
    await this.api.post('/v1/instances/{id}/stop', { params: { path: { id } } });
    await this.statusIs(id, 'stopped');
  }

  async destroy(id: string): Promise<void> {
    await this.api.delete('/v1/instances/{id}', { params: { path: { id } } });
    await this.statusIs(id, 'destroyed');
  }

  statusIs(id: string, wanted: Instance['status']): Promise<Instance> {
    return eventually(`the status ${wanted}`, async () => {
      const instance = await this.api.get('/v1/instances/{id}', { params: { path: { id } } });
      return instance.status === wanted && instance;
    });
  }
}

async function market(past: Past): Promise<{ offers: string[]; templates: string[] }> {
  const offers: string[] = [];
  for (const [index, name] of ['amber', 'birch', 'cedar'].entries()) {
    const { hostId } = await past.host(name);
    for (const num_gpus of [1, 2]) {
      const prices = {
        price_per_hour_micro: (900_000 + 300_000 * index) * num_gpus,
        storage_price_per_gb_hour_micro: 100,
      };
      const body = { machine_id: hostId, num_gpus, ...prices };
      offers.push((await past.operator.post('/v1/operator/offers', { body })).id);
    }
  }
  const templates: string[] = [];
  for (const body of TEMPLATES) templates.push((await past.operator.post('/v1/operator/templates', { body })).id);
  return { offers, templates };
}

/** Ten days of work, each of an instance that is gone, or stopped for a while. */
async function history(
  past: Past,
  organizations: Organization[],
  offers: string[],
  templates: string[],
): Promise<void> {
  const any = <T>(list: T[], index: number) => list[index % list.length] as T;
  for (let day = 0; day < DAYS; day++) {
    const organization = any(organizations, day);
    const id = await organization.running(any(offers, day), any(templates, day), `run ${day + 1}`);
    await past.pass(6);
    await organization.stop(id);
    await past.pass(10);
    await organization.destroy(id);
    if (day < DAYS - 1) await past.pass(8);
  }
}

/** One instance in each status; hosts leave undone what is on its way. */
async function everyStatus(
  agent: FakeAgent,
  organization: Organization,
  offer: string,
  template: string,
): Promise<void> {
  const { api } = organization;
  const run = (label: string) => organization.running(offer, template, label);
  await run('running');
  await organization.stop(await run('stopped'));
  const [failing, starting, stopping, destroying] = [
    await run('error'),
    await run('starting'),
    await run('stopping'),
    await run('destroying'),
  ];
  await organization.stop(starting);
  agent.exit(failing, { code: 1, lastLines: ['CUDA out of memory'] });
  await organization.statusIs(failing, 'error');
  agent.automatic = false;
  await organization.deploy(offer, template, 'creating');
  await api.post('/v1/instances/{id}/stop', { params: { path: { id: stopping } } });
  await api.delete('/v1/instances/{id}', { params: { path: { id: destroying } } });
  const start = api.post('/v1/instances/{id}/start', { params: { path: { id: starting } } });
  agent.accept(await eventually('the start', () => agent.held.find(({ running }) => running && !running.mayCreate)));
  await start;
}

async function main(): Promise<void> {
  if (existsSync(database)) throw new Error(`${database} is there already: remove ${folder} first`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const past = new Past();
  await past.begin();
  try {
    const { offers, templates } = await market(past);
    const organizations: Organization[] = [];
    for (const name of ORGANIZATIONS) organizations.push(await Organization.found(past, name));
    await history(past, organizations, offers, templates);
    const [agent, renter] = [past.agents[0], organizations[0]];
    if (agent && renter) await everyStatus(agent, renter, offers[0] ?? '', templates[0] ?? '');
    const accounts = {
      operator: OPERATOR,
      ...Object.fromEntries(organizations.map(({ name, account }) => [name, account])),
    };
    writeFileSync(join(folder, 'accounts.json'), JSON.stringify(accounts, null, 2), { mode: 0o600 });
    writeFileSync(join(folder, 'hosts.json'), JSON.stringify(past.agents.map(({ state }) => state)), { mode: 0o600 });
  } finally {
    await past.end();
  }
  process.stdout.write(
    `${database} is there, and accounts in ${join(folder, 'accounts.json')}: npm run dev serves it\n`,
  );
}

await main().catch((error: unknown) => {
  process.stderr.write(`seed: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
