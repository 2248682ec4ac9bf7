import { Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Agent } from '../../agent/assemble.js';
import { Journal } from '../../agent/journal/journal.js';
import { dialer } from '../../agent/link/dial.js';
import { systemClock } from '../../shared/clock.js';
import { PROTOCOL_MAX, PROTOCOL_MIN } from '../../shared/protocol.js';
import type { InstanceBody } from '../harness/api-client.js';
import { agentOnFakes } from '../harness/agent-on-fakes.js';
import { TestControlPlane, statusIs } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import type { FakeAgent } from '../harness/fake-agent.js';
import { makePublicKey } from '../harness/keys.js';
import { readWire, type WireVersion } from '../harness/wire.js';
import { describeHost, type SuiteHost } from '../suites/host-suite.js';
import { specOf } from '../suites/runtime-suite.js';

describe('an agent of the release before, at this control plane', () => {
  let test: TestControlPlane;
  let agent: FakeAgent;
  let host: SuiteHost;

  beforeAll(async () => {
    test = await TestControlPlane.start();
    const { api: renter } = await test.renter();
    agent = await test.host({ wire: 'protocol 1' });
    const key = { name: 'key', public_key: makePublicKey('-t', 'ed25519') };
    const { id: sshKeyId } = await renter.post<{ id: string }>('/v1/ssh-keys', key);
    const [offerId, templateId] = [await test.offer(agent), await test.template()];
    host = { renter, offerId, templateId, sshKeyId };
  });
  afterAll(() => test.stop());

  it('agrees upon the protocol of the older one', () => {
    expect(PROTOCOL_MIN).toBe(PROTOCOL_MAX - 1);
    expect(agent.protocol).toBe(PROTOCOL_MIN);
  });
  describeHost(() => host);
});

describe('one that is older still, or newer than anybody knows,', () => {
  it('is refused, and told which of both to upgrade', async () => {
    const test = await TestControlPlane.start();
    const agent = await test.host();
    await expect(agent.claim({ protocolMin: 0, protocolMax: 0 })).rejects.toThrow(
      /speaks protocol 1 to 2, the agent 0/,
    );
    await expect(agent.claim({ protocolMin: 3, protocolMax: 4 })).rejects.toThrow(/upgrade the older one/);
    const next = await agent.claim({ protocolMin: 2, protocolMax: 3 });
    expect(next.protocol).toBe(2);
    await test.stop();
  });
});

it('a request is named in the command that it leads to, and so on both sides', async () => {
  const test = await TestControlPlane.start();
  const { api } = await test.renter();
  const agent = await test.host({ gpus: 1, automatic: false });
  const body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
  const { headers, body: created } = await api.request<InstanceBody>('POST', '/v1/instances', body);
  const command = await eventually('the command', () => agent.held[0]);
  expect(command.requestId).toBe(headers.get('x-request-id'));
  agent.done(command);
  await statusIs(api, created.id, 'running');
  await test.stop();
});

/** A control plane of a release, as far as an agent sees one: it says welcome, gives commands, and hears what comes back. */
class OlderControlPlane {
  private readonly server = new Server();
  private stream: ServerDuplexStream<unknown, unknown> | undefined;
  readonly heard: Record<string, unknown>[] = [];
  address = '';

  constructor(
    private readonly version: WireVersion,
    private readonly protocol: number,
  ) {}

  async listen(): Promise<void> {
    this.server.addService(readWire(this.version).service, {
      enroll: () => undefined,
      connect: (stream: ServerDuplexStream<unknown, unknown>) => {
        this.stream = stream;
        stream.on('data', (message: Record<string, unknown>) => this.hear(message));
        stream.on('error', () => undefined);
      },
    });
    const credentials = ServerCredentials.createInsecure();
    const port = await new Promise<number>((resolve, reject) =>
      this.server.bindAsync('127.0.0.1:0', credentials, (error, bound) => (error ? reject(error) : resolve(bound))),
    );
    this.address = `127.0.0.1:${port}`;
  }

  give(command: object): void {
    this.stream?.write({ command });
  }

  /** What the agent said of this kind, the newest last. */
  of(kind: string): Record<string, unknown>[] {
    return this.heard.flatMap((message) =>
      message['message'] === kind ? [message[kind] as Record<string, unknown>] : [],
    );
  }

  close(): void {
    this.server.forceShutdown();
  }

  private hear(message: Record<string, unknown>): void {
    this.heard.push(message);
    const welcome = { protocol: this.protocol, epoch: 1, incarnation: 'i', floors: [], heartbeatMs: 1_000 };
    if (message['message'] === 'hello') this.stream?.write({ welcome });
  }
}

describe('this agent, at a control plane of the release before,', () => {
  let older: OlderControlPlane;
  let agent: Agent;
  let folder: string;

  afterEach(async () => {
    await agent.stop();
    older.close();
    rmSync(folder, { recursive: true });
  });

  async function connect(protocol: number): Promise<void> {
    older = new OlderControlPlane('protocol 1', protocol);
    await older.listen();
    folder = mkdtempSync(join(tmpdir(), 'gpurent-skew-'));
    const identity = { hostId: 'h', controlPlane: older.address, proof: { kind: 'secret' as const, credential: 'c' } };
    const journal = new Journal(join(folder, 'journal.db'));
    agent = agentOnFakes({ clock: systemClock, dial: dialer(() => identity), journal });
    await agent.start();
  }

  it('does what it is told, and says so in words that the older one knows', async () => {
    await connect(1);
    const hello = await eventually('hello', () => older.of('hello')[0]);
    expect(hello['answersMeasurementQueries']).toBeUndefined();
    expect(hello).toMatchObject({ protocolMin: 1, protocolMax: 2 });
    const gpuUuids = (hello['inventory'] as { gpus: { uuid: string }[] }).gpus.map(({ uuid }) => uuid);
    const instanceId = randomUUID();
    const tell = async (commandId: string, desired: object, sequence: number) => {
      older.give({ commandId, instanceId, sequence, ...desired });
      return eventually(`the end of ${commandId}`, () =>
        older
          .of('commandResult')
          .find((result) => result['commandId'] === commandId && result['outcome'] !== 'COMMAND_OUTCOME_ACCEPTED'),
      );
    };
    const spec = specOf('image:1', { gpuUuids });
    const up = await tell('up', { running: { mayCreate: true, spec } }, 1);
    expect(up).toMatchObject({ outcome: 'COMMAND_OUTCOME_DONE', observation: { state: 'WORKLOAD_STATE_RUNNING' } });
    await eventually('its heartbeat', () =>
      older.of('heartbeat').some(({ running }) => (running as { instanceId: string }[])[0]?.instanceId === instanceId),
    );
    const down = await tell('down', { stopped: { releaseGpus: false } }, 2);
    expect(down).toMatchObject({ outcome: 'COMMAND_OUTCOME_DONE', observation: { state: 'WORKLOAD_STATE_STOPPED' } });
    expect(await tell('gone', { absent: {} }, 3)).toMatchObject({ outcome: 'COMMAND_OUTCOME_DONE' });
  });

  it('does not take orders in a protocol that it does not speak', async () => {
    await connect(3);
    await eventually('its farewell, and another attempt', () => older.of('hello').length > 1);
    expect((await agent.snapshot()).connected).toBe(false);
  });
});
