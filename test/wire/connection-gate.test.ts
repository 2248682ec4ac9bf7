import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { Socket, connect } from 'node:net';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConnectionGate, type GateLimits } from '../../shared/connection-gate.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import { TestControlPlane } from '../harness/control-plane.js';
import { FakeAgent } from '../harness/fake-agent.js';
import { ManualClock } from '../harness/manual-clock.js';

const MEBIBYTE = 1024 * 1024;
const LIMITS: GateLimits = { unproven: 4, unprovenOfOneAddress: 3, waiting: 6, waitingOfOneAddress: 5, proven: 5 };

describe('connections of peers that have proven nothing', () => {
  let clock: ManualClock;
  let gate: ConnectionGate;
  let port: number;
  /** Who was let in, as `address:port`, in order. */
  const served: string[] = [];
  const made: Socket[] = [];

  beforeEach(async () => {
    clock = new ManualClock();
    gate = new ConnectionGate(
      clock,
      ({ remoteAddress, remotePort }) => void served.push(`${remoteAddress}:${remotePort}`),
      LIMITS,
    );
    port = await gate.listen('0.0.0.0', 0);
  });
  afterEach(() => {
    gate.destroy();
    for (const socket of made.splice(0)) socket.destroy();
    served.length = 0;
  });

  async function dial(localAddress = '127.0.0.1'): Promise<{ socket: Socket; peer: string }> {
    const socket = connect({ host: '127.0.0.1', port, localAddress });
    socket.on('error', () => undefined);
    made.push(socket);
    await once(socket, 'connect');
    return { socket, peer: `${localAddress}:${socket.localPort}` };
  }
  const isServed = (peer: string) => eventually(`${peer} to be served`, () => served.includes(peer));
  const isEnded = (socket?: Socket) =>
    eventually('the end', () => socket !== undefined && (socket.destroyed || socket.readableEnded));

  it('are ended after twenty seconds; those of hosts that have proven themselves go on', async () => {
    const [silent, host] = [await dial(), await dial()];
    silent.socket.resume();
    for (const { peer } of [silent, host]) await isServed(peer);
    gate.prove(host.peer);
    clock.advance(19_000);
    expect(silent.socket.destroyed).toBe(false);
    clock.advance(1_000);
    await isEnded(silent.socket);
    expect(host.socket.destroyed).toBe(false);
  });

  it('get few places in one turn of the event loop, and the others in later ones', async () => {
    const turns: (() => void)[] = [];
    const letIn = ({ remotePort }: Socket) => void served.push(String(remotePort));
    const paced = new ConnectionGate(clock, letIn, { ...LIMITS, perTurn: 2 }, (run) => turns.push(run));
    try {
      port = await paced.listen('0.0.0.0', 0);
      await dial();
      const last = await dial();
      await eventually('two', () => served.length === 2);
      const late = await dial('127.0.0.2');
      await eventually('the third', () => paced.connections === 3);
      expect(served).not.toContain(String(late.socket.localPort));
      turns.shift()?.();
      expect(served).toContain(String(late.socket.localPort));
      expect(served).toContain(String(last.socket.localPort));
    } finally {
      paced.destroy();
    }
  });

  it('get no place when they have waited for longer than their peers do', async () => {
    const letIn = ({ remotePort }: Socket) => void served.push(String(remotePort));
    const impatient = new ConnectionGate(clock, letIn, { ...LIMITS, unproven: 1, waitMs: 5_000 });
    try {
      port = await impatient.listen('0.0.0.0', 0);
      const { peer } = await dial();
      await eventually('the first', () => served.length === 1);
      const { socket: late } = await dial();
      await eventually('the second', () => impatient.connections === 2);
      clock.advance(2_000);
      const { socket: newer } = await dial();
      await eventually('the third', () => impatient.connections === 3);
      clock.advance(3_001);
      late.resume();
      impatient.prove(peer);
      await eventually('the newer one', () => served.includes(String(newer.localPort)));
      impatient.prove(`127.0.0.1:${newer.localPort}`);
      await isEnded(late);
      expect(served).toHaveLength(2);
    } finally {
      impatient.destroy();
    }
  });

  it('are not taken any more by a gate that is closed', async () => {
    const { socket } = await dial();
    gate.close();
    const late = new Socket();
    gate.take(late);
    expect(late.destroyed).toBe(true);
    socket.destroy();
  });

  it('are served so many at once of one address; of those that wait, the newest is next', async () => {
    const first = [await dial(), await dial(), await dial()];
    for (const { peer } of first) await isServed(peer);
    const [waits, newest] = [await dial(), await dial()];
    const elsewhere = await dial('127.0.0.2');
    await isServed(elsewhere.peer);
    expect(served).toHaveLength(4);
    first[0]?.socket.resume();
    clock.advance(3_000);
    await isServed(newest.peer);
    await isEnded(first[0]?.socket);
    await isServed(waits.peer);
  });

  it('leave their place when they are proven', async () => {
    const hosts = [await dial(), await dial(), await dial(), await dial(), await dial()];
    await eventually('three', () => served.length === 3);
    for (const peer of Array.from(served)) gate.prove(peer);
    await eventually('all', () => served.length === hosts.length);
  });

  it('are ended where there are enough that are proven', async () => {
    const hosts: Socket[] = [];
    for (let index = 0; index < 6; index++) {
      const { socket, peer } = await dial();
      socket.resume();
      hosts.push(socket);
      await isServed(peer);
      gate.prove(peer);
    }
    await isEnded(hosts[5]);
    expect(hosts.slice(0, 5).some(({ destroyed }) => destroyed)).toBe(false);
  });

  it('wait in a bounded number, of which the oldest makes room', async () => {
    for (let index = 0; index < 3; index++) await isServed((await dial()).peer);
    const waiting: Socket[] = [];
    for (let index = 0; index < 6; index++) waiting.push((await dial()).socket);
    waiting[0]?.resume();
    await isEnded(waiting[0]);
    expect(waiting.slice(1).some(({ destroyed }) => destroyed)).toBe(false);
  });

  it('are cut when they send more than a peer needs to prove itself', async () => {
    const { socket, peer } = await dial();
    await isServed(peer);
    socket.resume();
    socket.write(Buffer.alloc(MEBIBYTE));
    await advanceUntil('the cut', { clock, stepMs: 100 }, () => socket.destroyed || socket.readableEnded);
  });
});

describe('a control plane', () => {
  let test: TestControlPlane;
  beforeEach(async () => {
    test = await TestControlPlane.start();
  });
  afterEach(() => test.stop());

  /** An enrollment that never ends: its message says a mebibyte, and lacks a byte. */
  function dripEnrollment(session: ClientHttp2Session): void {
    const path = '/gpurent.agent.v1.AgentService/Enroll';
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    stream.on('error', () => undefined);
    const head = Buffer.alloc(5);
    head.writeUInt32BE(MEBIBYTE - 5, 1);
    stream.write(head);
    stream.write(Buffer.alloc(MEBIBYTE - 6));
  }

  // What that costs is measured in test/load/strangers.test.ts, where the control plane is a process of its own.
  it('cuts off who begins hundreds of enrollments, and serves an honest host meanwhile', async () => {
    const session = connectHttp2(`http://${test.grpcAddress}`);
    session.on('error', () => undefined);
    for (let index = 0; index < 400; index++) dripEnrollment(session);
    const passing = { clock: test.clock, stepMs: 100, parties: [() => test.roundTrip()] };
    await advanceUntil('the cut', passing, () => session.destroyed || session.closed);
    const agent = await test.host();
    expect(agent.connected).toBe(true);
  });

  it('lets an honest host in past hundreds of connections that say nothing', async () => {
    const silent: Socket[] = [];
    for (let index = 0; index < 600; index++) {
      const [host = '', port = ''] = test.grpcAddress.split(':');
      const socket = connect({ host, port: Number(port) });
      socket.on('error', () => undefined);
      silent.push(socket);
    }
    await Promise.all(silent.map((socket) => once(socket, 'connect')));
    const token = await test.enrollmentToken();
    let agent: FakeAgent | undefined;
    const enrolling = FakeAgent.enroll(test.grpcAddress, token).then((enrolled) => (agent = enrolled));
    const passing = { clock: test.clock, stepMs: 100, parties: [() => test.roundTrip()] };
    await advanceUntil('the enrollment', passing, () => agent);
    agent = await enrolling;
    test.agents.push(agent);
    let connected = false;
    void agent.connect().then(() => (connected = true));
    await advanceUntil('the host', passing, () => connected);
    for (const socket of silent) socket.destroy();
  });

  it('turns away whoever is refused again and again, and looks at no more of it', async () => {
    const attempt = () => FakeAgent.enroll(test.grpcAddress, 'enr_nonsense').then(() => '', String);
    const refusals = new Set<string>();
    for (let index = 0; index < 210; index++) refusals.add(await attempt());
    expect([...refusals].some((text) => text.includes('too many refused attempts'))).toBe(true);
    test.clock.advance(10_000);
    const agent = await FakeAgent.enroll(test.grpcAddress, await test.enrollmentToken());
    test.agents.push(agent);
  });
});
