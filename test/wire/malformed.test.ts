import { Client, Metadata, credentials } from '@grpc/grpc-js';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import type { FakeAgent } from '../harness/fake-agent.js';
import { fakeGpuUuid } from '../harness/fake-inventory.js';
import { INVENTORY } from '../harness/inventory.js';
import { dialWire, readWire, type WireEnrolled } from '../harness/wire.js';

const CONNECT = '/gpurent.agent.v1.AgentService/Connect';
const ROUNDS = Number(process.env['TEST_ROUNDS'] ?? 3) * 20;
const GPU = { uuid: fakeGpuUuid(1, 1), model: 'model', memoryMb: 1_000, minorNumber: 0, pciAddress: '' };
const HELLO = {
  protocolMin: 1,
  protocolMax: 2,
  agentVersion: '1',
  bootId: 'boot',
  inventory: { ...INVENTORY, gpus: [GPU] },
};

let test: TestControlPlane;
let renter: Renter;
let agent: FakeAgent;
/** Of a neighbour: one runs, the other is told to stop and has not answered. */
let running: string;
let stopping: string;
let rogue: WireEnrolled;
const encode = readWire().service['Connect']?.requestSerialize ?? (() => Buffer.alloc(0));

beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
  agent = await test.host({ gpus: 2 });
  const body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
  const deploy = async () => (await renter.api.post<InstanceBody>('/v1/instances', body)).id;
  [running, stopping] = [await deploy(), await deploy()];
  for (const id of [running, stopping]) await statusIs(renter.api, id, 'running');
  agent.automatic = false;
  await renter.api.post(`/v1/instances/${stopping}/stop`);
  await eventually('the command', () => agent.held.length > 0);
  const client = dialWire(test.grpcAddress);
  const token = await test.enrollmentToken();
  rogue = await new Promise((resolve, reject) =>
    client.enroll({ token, inventory: INVENTORY }, (error, enrolled) => (error ? reject(error) : resolve(enrolled))),
  );
  client.close();
});
afterAll(() => test.stop());

/** How both stand, less what grows with time, and what has happened to them. */
async function neighbour(): Promise<object[]> {
  const paths = [running, stopping].map((id) => `/v1/instances/${id}`);
  const instances = await Promise.all(paths.map((path) => renter.api.get<InstanceBody>(path)));
  const events = await Promise.all(paths.map((path) => renter.api.get<object>(`${path}/events`)));
  return [...instances.map((instance) => ({ ...instance, spend_micro: 0 })), ...events];
}

/** Says these bytes as the rogue host, each a message of its own; answers how its stream ended. */
function say(...messages: Uint8Array[]): Promise<{ code: number; details: string }> {
  // So that what went before is forgiven.
  test.clock.advance(1_000);
  agent.beat();
  const client = new Client(test.grpcAddress, credentials.createInsecure());
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${rogue.credential}`);
  const asIs = (bytes: Buffer) => bytes;
  return new Promise((resolve) => {
    const stream = client.makeBidiStreamRequest(CONNECT, asIs, asIs, metadata);
    stream.on('data', () => {});
    stream.on('error', () => {});
    stream.on('status', ({ code, details }) => {
      client.close();
      resolve({ code, details });
    });
    for (const message of messages) stream.write(Buffer.from(message));
    stream.end();
  });
}

it.each([
  ['no message at all', [0xff, 0xff, 0xff, 0xff]],
  ['a message that ends too early', [...encode({ hello: HELLO })].slice(0, 20)],
  ['a text longer than the message', [0x2a, 0xff, 0xff, 0xff, 0xff, 0x0f]],
  ['a hundred thousand groups, each in the one before', Array<number>(100_000).fill(0x0b)],
  ['a number without an end', [0x08, ...Array.from({ length: 30 }, () => 0xff)]],
])('%s ends the stream of the host that says it, in words, and nothing else', async (_, bytes) => {
  for (const before of [[], [encode({ hello: HELLO })]]) {
    const { code, details } = await say(...before, Uint8Array.from(bytes));
    expect(code, details).not.toBe(0);
    expect(details).not.toBe('');
    expect(test.logged(30).at(-1)).toMatch(before.length > 0 ? /host disconnected/ : /gone before it was greeted/);
    expect(test.logged(30).at(-1)).toContain(rogue.hostId);
  }
  expect(await neighbour()).toMatchObject([{ status: 'running' }, { status: 'stopping' }, {}, {}]);
});

it.each([
  ['order', [{ heartbeat: { dockerAvailable: true } }]],
  ['protocol', [{ hello: { ...HELLO, protocolMin: 98, protocolMax: 99 } }]],
  ['content', [{ hello: { ...HELLO, bootId: 'x'.repeat(65) } }]],
] as const)('the metrics count a host that is refused: %s', async (reason, messages) => {
  const counted = async () =>
    Number(
      new RegExp(`^gpurent_host_refusals_total\\{reason="${reason}"\\} (\\d+)$`, 'm').exec(
        await (await fetch(`${test.url}/metrics`)).text(),
      )?.[1],
    );
  const before = await counted();
  await say(...messages.map(encode));
  expect(await counted()).toBe(before + 1);
});

it('messages with anything changed in them change nothing of a neighbour', async () => {
  const before = await neighbour();
  const [command] = agent.held;
  const observation = { state: 'WORKLOAD_STATE_STOPPED', runId: 'run', exit: { code: 1, ranMs: 5, lastLines: ['x'] } };
  const samples = [
    { hello: { ...HELLO, instances: [{ instanceId: running, sequence: 1, observation, gpuUuids: [GPU.uuid] }] } },
    { heartbeat: { dockerAvailable: true, gpus: [GPU], running: [{ instanceId: running }], diskFreeGb: 1 } },
    { commandResult: { ...command, outcome: 'COMMAND_OUTCOME_DONE', observation } },
    { workloadReport: { instanceId: running, number: 7, sequence: 9, observation } },
    { progress: { instanceId: running, kind: 'pulling', message: 'x' } },
    { logChunk: { subscriptionId: running, lines: [{ at: '1', text: 'x' }] } },
    {
      measurementReport: {
        instances: [
          { instanceId: running, minutes: [{ endedMsAgo: 1, diskUsedBytes: 1e13, gpus: [{ usePercent: 5 }] }] },
        ],
      },
    },
    { findingReport: { findings: [{ check: 'disk', verdict: 'VERDICT_FAILURE', what: 'it is full', advice: 'x' }] } },
    { measurementAnswer: { queryId: running, points: [{ endedMsAgo: 1, cpuMillis: 5 }] } },
  ].map((message) => Uint8Array.from(encode(message)));
  const changed = fc
    .tuple(
      fc.constantFrom(...samples),
      fc.array(fc.tuple(fc.nat(400), fc.nat(255)), { maxLength: 4 }),
      fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.nat(400) }),
    )
    .map(([sample, changes, length]) => {
      const bytes = Uint8Array.from(sample);
      for (const [at, value] of changes) bytes[at % bytes.length] = value;
      return bytes.slice(0, length ?? bytes.length);
    });
  await say(encode({ hello: HELLO }), ...samples.slice(1));
  expect(await neighbour()).toEqual(before);
  await fc.assert(
    fc.asyncProperty(fc.boolean(), fc.array(changed, { minLength: 1, maxLength: 20 }), async (greets, messages) => {
      await say(...(greets ? [encode({ hello: HELLO })] : []), ...messages);
      expect(agent.connected).toBe(true);
    }),
    { numRuns: ROUNDS },
  );
  expect(await neighbour()).toEqual(before);
  expect(test.logged(50).filter((line) => line.includes('a host message failed'))).toEqual([]);
});
