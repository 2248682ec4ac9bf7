import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createControlPlane } from '../../control-plane/app.js';
import { parseConfig } from '../../control-plane/config.js';
import { ApiClient, type InstanceBody } from '../../scripts/client.js';
import { silentLogger } from '../../shared/logger.js';
import { statusIs } from './control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import { FakeAgent } from './fake-agent.js';
import { makePublicKey } from './keys.js';
import { ManualClock } from './manual-clock.js';

const HOUR_MS = 60 * 60_000;
const DAYS = 10;
const CREDIT_MICRO = 500_000_000;
const OPERATOR = { email: 'operator@localhost.test', password: randomBytes(12).toString('hex') };
const ORGANIZATIONS = ['renter', 'lab', 'studio'];
const GPUS = 8;

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
  operator = new ApiClient('');
  private grpc = '';

  async begin(): Promise<void> {
    await this.controlPlane.createOperator(OPERATOR.email, OPERATOR.password);
    const { http, grpc } = await this.controlPlane.start({ heartbeat: false });
    this.grpc = grpc;
    const api = new ApiClient(`http://${http}`);
    this.operator = api.as((await api.post<{ token: string }>('/v1/auth/sign-in', OPERATOR)).token);
  }

  async host(name: string): Promise<FakeAgent> {
    const { token } = await this.operator.post<{ token: string }>('/v1/operator/enrollment-tokens', {});
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
    readonly api: ApiClient,
  ) {}

  static async found(past: Past, name: string): Promise<Organization> {
    const account = { email: `${name}@localhost.test`, password: randomBytes(12).toString('hex') };
    const made = await past.operator
      .as(undefined)
      .post<{ token: string; organization: { id: string } }>('/v1/auth/sign-up', { ...account, name });
    const credit = { amount_micro: CREDIT_MICRO, reason: 'to begin with' };
    await past.operator.post(`/v1/operator/organizations/${made.organization.id}/credits`, credit);
    const organization = new Organization(name, account, past.operator.as(made.token));
    const key = { name: 'laptop', public_key: makePublicKey('-t', 'ed25519') };
    organization.sshKeyId = (await organization.api.post<{ id: string }>('/v1/ssh-keys', key)).id;
    return organization;
  }

  async deploy(offerId: string, templateId: string, label: string): Promise<string> {
    const body = { offer_id: offerId, template_id: templateId, disk_gb: 50, label, ssh_key_id: this.sshKeyId };
    return (await this.api.post<InstanceBody>('/v1/instances', body)).id;
  }

  async running(offerId: string, templateId: string, label: string): Promise<string> {
    const id = await this.deploy(offerId, templateId, label);
    await statusIs(this.api, id, 'running');
    return id;
  }

  async stop(id: string): Promise<void> {
    await this.api.post(`/v1/instances/${id}/stop`);
    await statusIs(this.api, id, 'stopped');
  }

  async destroy(id: string): Promise<void> {
    await this.api.delete(`/v1/instances/${id}`);
    await statusIs(this.api, id, 'destroyed');
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
      const offer = { machine_id: hostId, num_gpus, ...prices };
      offers.push((await past.operator.post<{ id: string }>('/v1/operator/offers', offer)).id);
    }
  }
  const templates: string[] = [];
  for (const fields of [
    { name: 'Shell', image: 'debian:bookworm', mode: ['ssh'], recommended: true },
    { name: 'Notebook', image: 'jupyter/base-notebook:latest', mode: ['ssh', 'jupyter'], recommended: true },
    { name: 'Batch', image: 'busybox:1', mode: [], command: ['true'] },
  ])
    templates.push((await past.operator.post<{ id: string }>('/v1/operator/templates', fields)).id);
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
  await statusIs(api, failing, 'error');
  agent.automatic = false;
  await organization.deploy(offer, template, 'creating');
  await api.post(`/v1/instances/${stopping}/stop`);
  await api.delete(`/v1/instances/${destroying}`);
  const start = api.post(`/v1/instances/${starting}/start`);
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
