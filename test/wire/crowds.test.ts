import { status } from '@grpc/grpc-js';
import { EventEmitter } from 'node:events';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { HelloQueue } from '../../control-plane/grpc/hello-queue.js';
import { serveHost, type HostStream } from '../../control-plane/grpc/host-session.js';
import { hashToken } from '../../control-plane/services/secrets/tokens.js';
import { AgentMessage, Hello, Inventory, type ControlMessage } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { silentLogger } from '../../shared/logger.js';
import { REDIAL_AFTER } from '../../shared/protocol.js';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane } from '../harness/control-plane.js';
import { FakeAgent } from '../harness/fake-agent.js';

const HOSTS = 20;
const PER_TURN = 8;

let test: TestControlPlane;
let agents: FakeAgent[];
let first: FakeAgent;

beforeAll(async () => {
  test = await TestControlPlane.start();
  const token = await test.enrollmentToken(HOSTS);
  const enroll = () => FakeAgent.enroll(test.grpcAddress, token, { gpus: 1 });
  first = await enroll();
  agents = [first, ...(await Promise.all(Array.from({ length: HOSTS - 1 }, enroll)))];
});
afterAll(async () => {
  for (const agent of agents) agent.close();
  await test.stop();
});

beforeEach(() => test.core.platform.connections.closeAll('test'));

/** A stream of a host as the gateway has it. */
class Stream extends EventEmitter {
  welcomes = 0;
  refusal: { code: status; metadata?: { get(key: string): unknown[] } } | undefined;

  constructor() {
    super();
    this.on('error', (refusal: Stream['refusal']) => (this.refusal = refusal));
  }

  write({ message }: ControlMessage): boolean {
    this.welcomes += Number(message?.$case === 'welcome');
    return true;
  }

  end(): this {
    return this;
  }
}

function hello({ inventory }: FakeAgent): AgentMessage {
  const value = Hello.create({ protocolMin: 1, protocolMax: 2, inventory: Inventory.fromJSON(inventory) });
  return { message: { $case: 'hello', value } };
}

function connect(agent: FakeAgent, hellos: HelloQueue): Stream {
  const stream = new Stream();
  const proof = { hash: hashToken(agent.credential) };
  serveHost(test.core.platform, silentLogger, { stream: stream as unknown as HostStream, proof, hellos });
  stream.emit('data', hello(agent));
  return stream;
}

it('the API answers while hosts that connect at once wait for their turn', async () => {
  const turns: (() => void)[] = [];
  const hellos = new HelloQueue((run) => turns.push(run));
  const streams = agents.map((agent) => connect(agent, hellos));
  const welcomed = () => streams.filter(({ welcomes }) => welcomes === 1).length;
  const connected = async () => {
    const { items } = await test.operator.get<{ items: { connected: boolean }[] }>('/v1/operator/machines');
    return items.filter((machine) => machine.connected).length;
  };
  expect(welcomed()).toBe(PER_TURN);
  expect(await connected()).toBe(PER_TURN);
  const take = () => {
    turns.shift()?.();
    test.core.platform.store.commit();
  };
  take();
  expect(await connected()).toBe(2 * PER_TURN);
  take();
  expect(welcomed()).toBe(HOSTS);
});

it('a host whose stream ends while it waits is not connected', () => {
  const turns: (() => void)[] = [];
  const hellos = new HelloQueue((run) => turns.push(run));
  const { connections } = test.core.platform;
  const streams = agents.map((agent) => connect(agent, hellos));
  streams.at(-1)?.emit('close');
  for (let turn = turns.shift(); turn; turn = turns.shift()) turn();
  test.core.platform.store.commit();
  expect(connections.isConnected(agents.at(-1)?.hostId ?? '')).toBe(false);
  expect(connections.isConnected(agents.at(-2)?.hostId ?? '')).toBe(true);
});

it('a host that speaks before its welcome is refused', () => {
  const hellos = new HelloQueue(() => undefined);
  const streams = agents.map((agent) => connect(agent, hellos));
  streams.at(-1)?.emit('data', hello(first));
  expect(streams.at(-1)?.refusal?.code).toBe(status.FAILED_PRECONDITION);
});

it('a host that finds too many others waiting is told when to dial again', () => {
  const full = { add: () => false } as unknown as HelloQueue;
  const { refusal } = connect(first, full);
  expect(refusal?.code).toBe(status.RESOURCE_EXHAUSTED);
  expect(Number(refusal?.metadata?.get(REDIAL_AFTER)[0])).toBeGreaterThan(0);
});

it('hosts are told to spread over a time that fits their number; an agent that does not know of it connects', async () => {
  const { connections } = test.core.platform;
  const { redialSpreadMs: few } = await first.connect();
  expect(few).toBe(0);
  connections.expect(5_000);
  expect(await first.connect()).toMatchObject({ redialSpreadMs: 10_000 });
  connections.expect(1_000_000);
  expect(await first.connect()).toMatchObject({ redialSpreadMs: 30_000 });
  const older = await test.host({ wire: 'protocol 1' });
  await eventually('the older one', () => connections.isConnected(older.hostId));
});

it('as many hosts are expected after a restart as are enrolled', async () => {
  const { items } = await test.operator.get<{ items: unknown[] }>('/v1/operator/machines');
  expect(items.length).toBeGreaterThanOrEqual(HOSTS);
  await test.restart();
  expect(test.core.platform.connections.expected).toBe(items.length);
});
