import BetterSqlite3 from 'better-sqlite3';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createControlPlane } from '../../control-plane/app.js';
import { parseConfig } from '../../control-plane/config.js';
import { silentLogger } from '../../shared/logger.js';
import { ApiClient, type InstanceBody } from '../harness/api-client.js';
import { Daemon } from '../../scripts/daemon.js';
import { eventually } from '../../scripts/eventually.js';
import { FakeAgent } from '../harness/fake-agent.js';
import { INSTANCES, populate } from '../harness/large-marketplace.js';
import { SEED } from '../harness/test-seed.js';
import { Random } from '../simulation/random.js';

const PROGRAM = fileURLToPath(new URL('../../dist/bundle/control-plane.js', import.meta.url));
const KILLS = Number(process.env['TEST_KILLS'] ?? 6);
const WRITERS = 4;
const HOSTS = 4;
const LIMIT_MS = 2_000;
const PATIENCE_MS = 110_000;
/** What a kill could have taken. */
const NEWEST = 50;
const OPERATOR = { email: 'op@example.com', password: 'operator password' };
const MANY = '1000000';

const random = new Random(SEED);
const folder = mkdtempSync(join(tmpdir(), 'gpurent-kill-'));
let daemon: Daemon;
let settings: Record<string, string>;
let operator: ApiClient;
let renter: ApiClient;
let organizationId = '';
/** Until it is up again nobody asks: what is measured is how long it takes, not how long beside impatient clients. */
let up: Promise<unknown> = Promise.resolve();
const agents: FakeAgent[] = [];

/** What the control plane has said yes to, and so must know for ever. */
const acknowledged = { credits: new Set<string>(), deploys: new Map<string, string>(), destroys: new Set<string>() };
const attempted = { credits: 0, deploys: 0 };

beforeAll(async () => {
  settings = {
    GPURENT_DATABASE: join(folder, 'gpurent.db'),
    GPURENT_HTTP_ADDRESS: '127.0.0.1:0',
    GPURENT_GRPC_ADDRESS: '127.0.0.1:0',
    GPURENT_LOG_LEVEL: 'warn',
    GPURENT_RATE_LIMIT_ADDRESS: MANY,
    GPURENT_RATE_LIMIT_CREDENTIAL: MANY,
  };
  const controlPlane = createControlPlane(parseConfig(settings), silentLogger);
  populate(controlPlane, Date.now());
  await controlPlane.createOperator(OPERATOR.email, OPERATOR.password);
  await controlPlane.stop();
});
afterAll(async () => {
  for (const agent of agents) agent.close();
  await daemon.stop('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

/** Starts the daemon; answers after how many milliseconds it was ready. The addresses stay the same from the first time on. */
async function start(): Promise<number> {
  const began = performance.now();
  daemon = Daemon.start('control-plane', PROGRAM, ['serve'], settings, join(folder, 'log'));
  const { http, grpc } = await daemon.firstLine<{ http: string; grpc: string }>();
  Object.assign(settings, { GPURENT_HTTP_ADDRESS: http, GPURENT_GRPC_ADDRESS: grpc });
  const readiness = await fetch(`http://${http}/readyz`);
  expect(readiness.status).toBe(200);
  return performance.now() - began;
}

async function prepareMarket(): Promise<{ offers: string[]; templateId: string }> {
  const api = new ApiClient(`http://${settings['GPURENT_HTTP_ADDRESS']}`);
  operator = api.as((await api.post<{ token: string }>('/v1/auth/sign-in', OPERATOR)).token);
  const account = { email: 'renter@example.com', password: 'a renter password', name: 'Renter' };
  const signedUp = await api.post<{ token: string; organization: { id: string } }>('/v1/auth/sign-up', account);
  renter = api.as(signedUp.token);
  organizationId = signedUp.organization.id;
  await operator.post(`/v1/operator/organizations/${organizationId}/credits`, { amount_micro: 1e12, reason: 'start' });
  const tokens = '/v1/operator/enrollment-tokens';
  const { token } = await operator.post<{ token: string }>(tokens, { max_uses: HOSTS });
  const offers: string[] = [];
  for (let index = 0; index < HOSTS; index++) {
    const agent = await FakeAgent.enroll(settings['GPURENT_GRPC_ADDRESS'] ?? '', token, { gpus: 8 });
    agents.push(agent);
    await agent.connect();
    const prices = { price_per_hour_micro: 1_000, storage_price_per_gb_hour_micro: 1 };
    const offer = { machine_id: agent.hostId, num_gpus: 1, ...prices };
    offers.push((await operator.post<{ id: string }>('/v1/operator/offers', offer)).id);
  }
  const template = await operator.post<{ id: string }>('/v1/operator/templates', { name: 'Test', image: 'test:1' });
  return { offers, templateId: template.id };
}

/** Writes without a pause until told to stop; what fails, because nobody is there, is tried again as something else. */
async function write(market: { offers: string[]; templateId: string }, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    await up;
    const kind = random.between(0, 3);
    await (kind === 0 ? deploy(market) : kind === 1 ? destroyOne() : credit()).catch(() => undefined);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function credit(): Promise<void> {
  const reason = randomUUID();
  attempted.credits++;
  await operator.post(`/v1/operator/organizations/${organizationId}/credits`, { amount_micro: 1, reason });
  acknowledged.credits.add(reason);
}

async function deploy({ offers, templateId }: { offers: string[]; templateId: string }): Promise<void> {
  const body = {
    offer_id: random.pick(offers),
    template_id: templateId,
    disk_gb: 10,
    label: randomUUID(),
  };
  attempted.deploys++;
  const answer = await renter.request<InstanceBody>('POST', '/v1/instances', body, { 'Idempotency-Key': body.label });
  if (answer.status === 201) acknowledged.deploys.set(body.label, answer.body.id);
}

async function destroyOne(): Promise<void> {
  const id = [...acknowledged.deploys.values()].find((one) => !acknowledged.destroys.has(one));
  if (id === undefined) return;
  const { status } = await renter.request('DELETE', `/v1/instances/${id}`);
  if (status < 300) acknowledged.destroys.add(id);
}

const acknowledgements = () => acknowledged.credits.size + acknowledged.deploys.size + acknowledged.destroys.size;

function reconnect(agent: FakeAgent): Promise<boolean> {
  const dial = () =>
    agent
      .connect()
      .then(() => true)
      .catch(() => false);
  return eventually('the host', dial, PATIENCE_MS);
}

/** The newest of what was acknowledged up to now, or all of it, is there, once. */
async function check(newest = NEWEST): Promise<void> {
  const [deploys, destroys] = [[...acknowledged.deploys].slice(-newest), new Set(acknowledged.destroys)];
  const { items } = await renter.get<{ items: (InstanceBody & { label: string })[] }>('/v1/instances');
  const byId = new Map(items.map((instance) => [instance.id, instance]));
  for (const [label, id] of deploys) {
    const found = byId.get(id) ?? (await renter.get<InstanceBody & { label: string }>(`/v1/instances/${id}`));
    expect(found.label).toBe(label);
    if (destroys.has(id)) expect(['destroying', 'destroyed']).toContain(found.status);
  }
  expect(new Set(items.map(({ label }) => label)).size).toBe(items.length);
}

/** The reasons of all credits in the ledger. */
function creditsBooked(): string[] {
  const database = new BetterSqlite3(settings['GPURENT_DATABASE'] ?? '', { readonly: true });
  try {
    const find = database.prepare<[], { reason: string }>("SELECT reason FROM transactions WHERE kind = 'credit'");
    return find.all().map(({ reason }) => reason);
  } finally {
    database.close();
  }
}

it(
  `kill -9 under load, ${KILLS} times: what was acknowledged is there, and nothing is there twice`,
  async () => {
    await start();
    const market = await prepareMarket();
    const readyMs: number[] = [];
    let isOver = false;
    const writers = Array.from({ length: WRITERS }, () => write(market, () => isOver));
    for (let kill = 0; kill < KILLS; kill++) {
      const enough = acknowledgements() + random.between(20, 119);
      await eventually('writes', () => acknowledgements() >= enough, PATIENCE_MS);
      await daemon.stop('SIGKILL');
      const started = start();
      up = started;
      readyMs.push(await started);
      await check();
      await Promise.all(agents.map(reconnect));
    }
    isOver = true;
    await Promise.all(writers);
    const longest = Math.max(...readyMs);
    const ratio = (LIMIT_MS / longest).toFixed(1);
    process.stdout.write(
      `${INSTANCES} instances, ${KILLS} kills, ${acknowledgements()} acknowledged writes of ${attempted.credits + attempted.deploys} attempts; ` +
        `ready again after ${Math.round(longest)} ms at most (2 s are ${ratio} times that)\n`,
    );
    await check(Infinity);
    const booked = creditsBooked();
    expect(new Set(booked).size).toBe(booked.length);
    for (const reason of acknowledged.credits) expect(booked.includes(reason)).toBe(true);
    // Every host holds exactly what the control plane says that it holds.
    await eventually(
      'agreement',
      async () => {
        for (const agent of agents) agent.beat();
        const { items } = await renter.get<{ items: InstanceBody[] }>('/v1/instances');
        const live = items.filter(({ status }) => status !== 'destroyed');
        if (live.some(({ status }) => status !== 'running')) return false;
        const held = agents.flatMap(({ workloads }) =>
          [...workloads].filter(([, { state }]) => state === 'WORKLOAD_STATE_RUNNING').map(([id]) => id),
        );
        return (
          held.sort().join() ===
          live
            .map(({ id }) => id)
            .sort()
            .join()
        );
      },
      PATIENCE_MS,
    );
  },
  10 * PATIENCE_MS,
);
