import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Agent } from '../../agent/assemble.js';
import { SimulatedGpus } from '../../agent/host/gpus/simulated.js';
import { Journal } from '../../agent/journal/journal.js';
import { dialer } from '../../agent/link/dial.js';
import { enroll } from '../../agent/link/enrollment.js';
import { readAccounts } from '../../agent/measurements/accounts.js';
import type { DockerRuntime } from '../../agent/runtime/docker/docker-runtime.js';
import type { InstanceBody } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import { agentOnFakes } from '../harness/agent-on-fakes.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import { SAMPLE_IMAGE, containersOf } from '../harness/docker.js';
import { INVENTORY } from '../harness/inventory.js';
import { makeRuntime } from '../harness/runtime.js';
import { takePorts } from '../harness/worker.js';
import { listening } from '../harness/told.js';

const LOOK_MS = 10_000;
/** With each answer of Docker: while an instance starts, the clock is no faster than time. */
const START_MS = 10;
/** A look reads the accounts of so many instances. */
const WATCHED = 2;
/** Then a look was over before both instances could be found, and the next one is due. */
const LOOK_TAKES_MS = 3_000;
const MOST_TRIES = 40;
const LOOKS_A_MINUTE = 6;
const MOST_MINUTES = 16;
/** More than a tenth of one core for the ten seconds that the clock shows. */
const BUSY_US = 1_200_000;

/** Counts the looks of the agent: each begins with the GPUs. */
class CountedGpus extends SimulatedGpus {
  looks = 0;

  override use(): ReturnType<SimulatedGpus['use']> {
    this.looks++;
    return super.use();
  }
}

let test: TestControlPlane;
let renter: Renter;
let runtime: DockerRuntime;
let agent: Agent;
let gpus: CountedGpus;
let hostId: string;
let reads = 0;
const folder = mkdtempSync(join(tmpdir(), 'gpurent-idle-'));

/** A real agent on a real Docker, whose time is the control plane's. */
beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
  gpus = new CountedGpus(2, 'idle');
  const inventory = { ...INVENTORY, cpuCores: 2, memoryMb: 2_048, gpus: (await gpus.inventory()).gpus };
  const introduction = { inventory, earlier: [] };
  const token = await test.enrollmentToken();
  const identity = await enroll(folder, { controlPlane: test.grpcAddress, token }, introduction);
  ({ hostId } = identity);
  runtime = await makeRuntime({ ports: takePorts(10), hostId });
  const { clock } = test;
  agent = agentOnFakes({
    clock,
    runtime,
    isolated: runtime,
    gpus,
    dial: dialer(() => identity),
    journal: new Journal(join(folder, 'journal.db')),
    describe: async () => inventory,
    instruments: {
      locate: (id) => runtime.locate(id),
      accounts: (located) => {
        reads++;
        return readAccounts(located);
      },
      diskUse: async () => null,
    },
  });
  await agent.start();
});
afterAll(async () => {
  await agent.stop();
  await test.stop();
  for (const { instanceId } of await runtime.list()) await runtime.remove(instanceId);
  rmSync(folder, { recursive: true });
});

const read = (id: string) => renter.api.get<InstanceBody>(`/v1/instances/${id}`);

const answered = () => runtime.list();

async function running(loop: string): Promise<string> {
  const passing = { clock: test, stepMs: START_MS, parties: [answered], steps: 30_000 };
  const machine_id = hostId;
  const prices = { price_per_hour_micro: 1_000, storage_price_per_gb_hour_micro: 0 };
  const { id: offer_id } = await test.operator.post<{ id: string }>('/v1/operator/offers', {
    machine_id,
    num_gpus: 1,
    ...prices,
  });
  await advanceUntil('the offer', passing, async () => {
    return (await renter.api.get<{ state: string }>(`/v1/offers/${offer_id}`)).state === 'available';
  });
  const template_id = await test.template({ image: SAMPLE_IMAGE, command: ['sh', '-c', loop] });
  const body = { offer_id, template_id, disk_gb: 10, idle_stop_minutes: 11 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await advanceUntil('the instance to run', passing, async () => {
    const { status, error_message } = await read(id);
    expect(status, error_message ?? '').not.toBe('error');
    return status === 'running';
  });
  return id;
}

async function cpuUsOf(id: string): Promise<number> {
  const located = await runtime.locate(id);
  return (located && readAccounts(located)?.cpuUs) ?? 0;
}

/** A look of the agent at both; those that compute have had the time for it if `isLong`. */
async function look(busy: string, isLong: boolean): Promise<void> {
  const from = isLong ? await cpuUsOf(busy) : 0;
  if (isLong) await eventually('some computing', async () => (await cpuUsOf(busy)) - from > BUSY_US, 180_000);
  const enough = reads + WATCHED;
  let begun = gpus.looks;
  test.advance(LOOK_MS);
  for (let tries = 0; reads < enough && tries < MOST_TRIES; tries++) {
    // A look that is not over yet lets the next one fall out.
    const passing = { clock: test, stepMs: 100, parties: [answered] };
    await advanceUntil('the look', passing, () => gpus.looks > begun);
    // Time stands still meanwhile: what a slow machine has not measured after eight seconds of the clock is not idle.
    await eventually('both to be read', () => reads >= enough, LOOK_TAKES_MS).catch(() => undefined);
    begun = gpus.looks;
  }
  expect(reads).toBeGreaterThanOrEqual(enough);
}

it('an instance that sleeps is stopped, and one that computes is not', async () => {
  const told = listening(test, renter.organizationId);
  // The one that is counted comes last: a slow start of another would leave minutes of it unmeasured.
  const busy = await running('while :; do :; done');
  const asleep = await running('exec sleep 100000');
  let minutes = 0;
  for (let status = 'running'; status === 'running' && minutes < MOST_MINUTES; minutes++) {
    for (let index = 0; index < LOOKS_A_MINUTE; index++) await look(busy, minutes % 6 === 5 && index === 0);
    ({ status } = await read(asleep));
  }
  expect(minutes).toBeGreaterThanOrEqual(11);
  const passing = { clock: test, stepMs: 50, parties: [answered], steps: 3_600 };
  await advanceUntil('the stop', passing, async () => (await read(asleep)).status === 'stopped');
  expect((await containersOf(asleep)).map(({ State }) => State)).toEqual(['exited']);
  expect((await read(busy)).status).toBe('running');
  const idle = told('instance.idle').map(({ subject }) => subject);
  expect(idle.filter((subject) => subject.includes(asleep))).toHaveLength(1);
});
