import { execFileSync } from 'node:child_process';
import { buffer } from 'node:stream/consumers';
import { pack } from 'tar-stream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CANARY_OF, LABEL } from '../../agent/runtime/docker/labels.js';
import type { InstanceBody } from '../harness/api-client.js';
import { statusIs } from '../harness/control-plane.js';
import { SAMPLE_IMAGE, containersOf, docker } from '../harness/docker.js';
import { eventually } from '../../scripts/eventually.js';
import { RealPlatform, RealRenter } from '../harness/real.js';

const LONG_MS = 180_000;
/** A micro-dollar each millisecond: what was spent is for how many milliseconds was charged. */
const RATE = 3_600_000;
/** What a container takes to come up or down, and a message on its way, on a busy machine. */
const SLACK_MS = 4_000;
/** How late a busy machine may be. */
const BUSY_MS = 30_000;
const MUTE = 'gpurent/mute:1';
/** Where only this host has networks: what is done to them reaches no other one. */
const SUBNET = '10.212.0.0/16';

type Body = InstanceBody & { ssh_ready_at: string | null; started_at: string | null; spend_micro: number };

let real: RealPlatform;
let renter: RealRenter;

beforeAll(async () => {
  await makeMute();
  real = await RealPlatform.start({ gpus: 4, agentEnv: { GPURENT_AGENT_SUBNET: SUBNET } });
  renter = await RealRenter.on(real, { image: MUTE, mode: ['ssh'] });
  await real.operator.request('PATCH', `/v1/operator/offers/${renter.offerId}`, {
    price_per_hour_micro: RATE,
    storage_price_per_gb_hour_micro: 0,
  });
});
afterAll(() => real.stop());

/** An image in which our SSH waits for ever for a file that is a pipe. */
async function makeMute(): Promise<void> {
  const container = await docker.createContainer({ Image: SAMPLE_IMAGE, Cmd: ['true'] });
  const archive = pack();
  archive.entry({ name: 'root/.ssh', type: 'directory', mode: 0o700 });
  archive.entry({ name: 'root/.ssh/authorized_keys', type: 'fifo', mode: 0o600 });
  archive.finalize();
  await container.putArchive(await buffer(archive), { path: '/' });
  await container.commit({ repo: 'gpurent/mute', tag: '1' });
  await container.remove();
}

const read = (id: string) => renter.api.get<Body>(`/v1/instances/${id}`);
const events = async (id: string) =>
  (await renter.api.get<{ items: { kind: string }[] }>(`/v1/instances/${id}/events`)).items.map(({ kind }) => kind);

/** When the control plane was asked for something, by its own clock: a test on a busy machine hears of it late. */
async function askedAt(id: string, kind: 'stop_requested' | 'destroy_requested'): Promise<number> {
  const { items } = await renter.api.get<{ items: { kind: string; at: string }[] }>(`/v1/instances/${id}/events`);
  return Math.max(...items.filter((event) => event.kind === kind).map(({ at }) => Date.parse(at)));
}

/** A container is made again where its port was taken: what was listed may be gone. */
function ifGone(error: unknown): undefined {
  if ((error as { statusCode?: number }).statusCode !== 404) throw error;
}

/** When its process came up, or ended, as Docker has it. */
async function processOf(id: string): Promise<{ up: number; down: number; isUp: boolean } | undefined> {
  const [container] = await containersOf(id);
  if (!container) return undefined;
  const inspected = await docker.getContainer(container.Id).inspect().catch(ifGone);
  if (!inspected) return undefined;
  const { State } = inspected;
  return { up: Date.parse(State.StartedAt), down: Date.parse(State.FinishedAt), isUp: State.Running };
}

const comesUp = (id: string) =>
  eventually(
    'its process',
    async () => {
      const process = await processOf(id);
      return process?.isUp && process;
    },
    LONG_MS,
  );

/** What it is charged for once that stands still, in milliseconds; never more than for all the time since it was started. */
function chargedMs(id: string, expectedMs: number): Promise<number> {
  return eventually(
    `about ${expectedMs} ms charged`,
    async () => {
      const { spend_micro, started_at } = await read(id);
      expect(spend_micro).toBeLessThanOrEqual(started_at === null ? 0 : Date.now() - Date.parse(started_at));
      return spend_micro >= expectedMs - SLACK_MS && spend_micro;
    },
    LONG_MS,
  );
}

// First of all: a host that has just been found sound is not tried again for a while.
it('SSH that is silent because of its host: nothing is charged, and the machine leaves the market until it answers again', async () => {
  const toContainers = ['OUTPUT', '-d', SUBNET, '-j', 'DROP'];
  const iptables = (...args: string[]) => execFileSync('iptables', ['--wait', '10', ...args]);
  const offer = () => renter.api.get<{ state: string }>(`/v1/offers/${renter.offerId}`);
  const machine = () => real.operator.get<{ obstacle: string | null }>(`/v1/operator/machines/${real.hostId}`);
  iptables('-I', ...toContainers);
  try {
    const { id } = await renter.deploy();
    await comesUp(id);
    const failed = await statusIs(renter.api, id, 'error', LONG_MS);
    expect(JSON.stringify(failed)).toContain('SSH to workloads on this host does not answer');
    await eventually('the market to know', async () => (await offer()).state === 'unavailable', LONG_MS);
    expect((await machine()).obstacle).toContain('test workload');
    expect(await read(id)).toMatchObject({ spend_micro: 0, started_at: null });
    expect(await containersOf(id)).toEqual([]);
  } finally {
    iptables('-D', ...toContainers);
  }
  await real.upkeep();
  await eventually('the market to have it again', async () => (await offer()).state === 'available', LONG_MS);
  expect((await machine()).obstacle).toBeNull();
  // Nothing of it stays.
  const label = [`${LABEL.host}=${CANARY_OF}${real.hostId}`];
  await eventually(
    'its end',
    async () => (await docker.listContainers({ all: true, filters: { label } })).length === 0,
    LONG_MS,
  );
});

it('SSH that is made silent: it runs ten seconds after its start, says so, and is charged from its start', async () => {
  const { id } = await renter.deploy();
  const { up } = await comesUp(id);
  const running = (await statusIs(renter.api, id, 'running', LONG_MS)) as Body;
  expect(Date.now() - up).toBeLessThan(10_000 + BUSY_MS);
  expect(running.ssh_ready_at).toBeNull();
  expect(await events(id)).toContain('ssh_silent');
  await renter.api.post(`/v1/instances/${id}/stop`);
  await statusIs(renter.api, id, 'stopped', LONG_MS);
  const asked = await askedAt(id, 'stop_requested');
  const charged = await chargedMs(id, asked - up);
  expect(charged).toBeLessThanOrEqual(asked - up + SLACK_MS);

  await renter.start(id);
  const again = await comesUp(id);
  await eventually('a second of computing', () => Date.now() - again.up > 1_000);
  await renter.api.delete(`/v1/instances/${id}`);
  const ended = await askedAt(id, 'destroy_requested');
  await eventually('its end', async () => (await read(id)).status === 'destroyed', LONG_MS);
  const both = await chargedMs(id, charged + ended - again.up);
  expect(both - charged).toBeLessThanOrEqual(ended - again.up + SLACK_MS);
  expect(both - charged).toBeGreaterThan(500);
});

it('deploy, compute, destroy before it is shown as running: charged', async () => {
  const { id } = await renter.deploy();
  const { up } = await comesUp(id);
  await eventually('some computing', () => Date.now() - up > 1_500, LONG_MS);
  expect((await read(id)).status).toBe('creating');
  await renter.api.delete(`/v1/instances/${id}`);
  const ended = await askedAt(id, 'destroy_requested');
  await eventually('its end', async () => (await read(id)).status === 'destroyed', LONG_MS);
  const charged = await chargedMs(id, ended - up);
  expect(charged).toBeGreaterThan(500);
  expect(charged).toBeLessThanOrEqual(ended - up + SLACK_MS);
});

it('a stop of what has hardly run gives hardly any grace', async () => {
  const template = await real.operator.post<{ id: string }>('/v1/operator/templates', {
    name: 'Deaf',
    image: SAMPLE_IMAGE,
    onstart: `trap '' TERM`,
    command: ['sh', '-c', `trap '' TERM; while :; do sleep 1; done`],
  });
  const { id } = await renter.deploy({ template_id: template.id });
  await statusIs(renter.api, id, 'running', LONG_MS);
  for (let round = 0; round < 2; round++) {
    const asked = Date.now();
    await renter.api.post(`/v1/instances/${id}/stop`);
    await statusIs(renter.api, id, 'stopped', LONG_MS);
    expect(((await processOf(id))?.down ?? 0) - asked).toBeLessThan(9_000);
    await renter.start(id);
    await statusIs(renter.api, id, 'running', LONG_MS);
  }
  await renter.destroy(id);
});
