import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Agent } from '../../agent/assemble.js';
import { parseConfig } from '../../agent/config.js';
import { linkChecks } from '../../agent/doctor/link-checks.js';
import { describeSnapshot } from '../../agent/status/snapshot.js';
import { Journal } from '../../agent/journal/journal.js';
import { dialer } from '../../agent/link/dial.js';
import { enroll } from '../../agent/link/enrollment.js';
import { linkFailureOf } from '../../agent/link/failure.js';
import { saveIdentity, type Identity } from '../../agent/link/identity.js';
import { probe } from '../../agent/link/probe.js';
import { advanceUntil } from '../harness/advance-until.js';
import { systemClock } from '../../shared/clock.js';
import { agentOnFakes } from '../harness/agent-on-fakes.js';
import { TestControlPlane } from '../harness/control-plane.js';
import { BusyGpus } from '../harness/busy-gpus.js';
import { INVENTORY } from '../harness/inventory.js';
import { ManualClock } from '../harness/manual-clock.js';

const TLS = { http: false, grpc: true, names: ['localhost', '127.0.0.1'] };

let test: TestControlPlane;
let other: TestControlPlane;
const hosts: Host[] = [];

beforeAll(async () => {
  test = await TestControlPlane.start({ tls: TLS });
  other = await TestControlPlane.start({ tls: TLS });
});
afterAll(async () => {
  for (const host of hosts) await host.close();
  await test.stop();
  await other.stop();
});

/** The agent over a fake Docker, with a real link. */
class Host {
  readonly folder = mkdtempSync(join(tmpdir(), 'gpurent-refused-'));
  readonly config = parseConfig({ GPURENT_AGENT_STATE_DIR: this.folder });
  private readonly clock = new ManualClock();
  private readonly journal = new Journal(join(this.folder, 'journal.db'));
  private agent: Agent | undefined;
  /** Resolves when the last dial has an answer. */
  private dialed: Promise<unknown> = Promise.resolve();
  identity!: Identity;

  static async enrolled(at = test): Promise<Host> {
    const host = new Host();
    hosts.push(host);
    const token = await at.enrollmentToken();
    const introduction = { inventory: { ...INVENTORY, gpus: [] }, earlier: [] };
    host.identity = await enroll(host.folder, { controlPlane: at.grpcAddress, token }, introduction);
    return host;
  }

  async start(): Promise<void> {
    const { clock, journal } = this;
    const connect = dialer(() => this.identity);
    const dial = () => {
      const wire = connect();
      this.dialed = new Promise<void>((resolve) => {
        wire.on('data', () => resolve());
        wire.on('error', () => resolve());
        wire.on('end', () => resolve());
      });
      return wire;
    };
    this.agent = agentOnFakes({ clock, journal, dial, gpus: new BusyGpus(0, 'none') });
    await this.agent.start();
  }

  async snapshot(until: (snapshot: Awaited<ReturnType<Agent['snapshot']>>) => unknown) {
    const passing = { clock: this.clock, stepMs: 200, parties: [() => this.dialed] };
    return advanceUntil('the snapshot', passing, async () => {
      const snapshot = await this.agent?.snapshot();
      return snapshot && until(snapshot) ? snapshot : undefined;
    });
  }

  /** What the doctor finds: told by the daemon, or by a call of its own. */
  async examine(isRunning: boolean) {
    const ask = async () => {
      if (!isRunning || !this.agent) throw new Error('the agent does not run');
      return this.agent.snapshot();
    };
    const [check] = linkChecks(this.config, systemClock, ask);
    return check?.look();
  }

  async close(): Promise<void> {
    await this.agent?.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const revoke = (host: Host) => test.operator.delete(`/v1/operator/machines/${host.identity.hostId}/credentials`);

describe('a host that is turned away says why, and what to do', () => {
  it.each<[string, (host: Host) => Promise<unknown>, RegExp, RegExp]>([
    ['revoked', revoke, /revoked by an operator/, /token of this machine.*--again/],
    [
      'removed',
      async (host) => {
        await test.operator.post(`/v1/operator/machines/${host.identity.hostId}/cordon`);
        await test.operator.delete(`/v1/operator/machines/${host.identity.hostId}`);
      },
      /an operator has removed this host/,
      /systemctl stop gpurent-agent.*--new/,
    ],
    [
      'unknown',
      async (host) => {
        const { identity } = await Host.enrolled(other);
        const { proof } = host.identity;
        if (proof.kind !== 'certificate' || identity.proof.kind !== 'certificate') throw new Error('no certificates');
        host.identity = {
          ...identity,
          controlPlane: test.grpcAddress,
          proof: { ...identity.proof, trust: proof.trust },
        };
      },
      /belongs to no host/,
      /right control plane.*--again.*--new/,
    ],
    [
      'untrusted',
      async (host) => {
        host.identity = { ...host.identity, controlPlane: other.grpcAddress };
      },
      /certificate/,
      /nobody intercepts.*--again/,
    ],
  ])('%s', async (_, turn, reason, remedy) => {
    const host = await Host.enrolled();
    await turn(host);
    saveIdentity(host.folder, host.identity);
    await host.start();
    const snapshot = await host.snapshot(({ refusal }) => refusal);
    expect(snapshot).toMatchObject({
      connected: false,
      refusal: { reason: expect.stringMatching(reason) as string, remedy: expect.stringMatching(remedy) as string },
    });
    expect(describeSnapshot(snapshot)).toMatch(/REFUSED at \d{4}-.*\n +what to do: /);
    const finding = { what: expect.stringMatching(reason) as string, advice: expect.stringMatching(remedy) as string };
    expect(await host.examine(true)).toMatchObject([{ verdict: 'bad', ...finding }]);
    expect(await host.examine(false)).toMatchObject([{ verdict: 'bad' }, { verdict: 'bad', ...finding }]);
  });
});

it('a refusal is remembered while the control plane is out of reach, and forgotten once the host is connected', async () => {
  const host = await Host.enrolled();
  const { identity } = host;
  await revoke(host);
  await host.start();
  await host.snapshot(({ refusal }) => refusal);
  host.identity = { ...identity, controlPlane: '127.0.0.1:1' };
  const away = await host.snapshot(({ disconnected }) => disconnected?.reason.includes('ECONNREFUSED'));
  expect(away.refusal?.reason).toMatch(/revoked/);
  expect(describeSnapshot(away)).toMatch(/REFUSED at .*revoked[^]*last tried at .*ECONNREFUSED/);
  host.identity = (await Host.enrolled()).identity;
  const back = await host.snapshot(({ connected }) => connected);
  expect(back).toMatchObject({ disconnected: null, refusal: null });
  expect(await host.examine(true)).toMatchObject([{ verdict: 'good' }]);
});

describe('a call that asks only whether the host is let in', () => {
  it('takes the place of no stream of it', async () => {
    const agent = await test.host();
    const host = await Host.enrolled();
    await host.start();
    await host.snapshot(({ connected }) => connected);
    expect(await probe(host.identity, systemClock)).toBeNull();
    expect(await host.examine(false)).toMatchObject([{ verdict: 'bad' }, { verdict: 'good' }]);
    expect((await host.snapshot(() => true)).connected).toBe(true);
    agent.close();
  });

  it('says where nothing answers', async () => {
    const { identity } = await Host.enrolled();
    expect(await probe({ ...identity, controlPlane: '127.0.0.1:1' }, systemClock)).toMatchObject({ kind: 'other' });
  });
});

it('what a stranger says in the place of a control plane steers no terminal, and fills none', () => {
  const { reason } = linkFailureOf({ code: 16, details: `\u001b[2Jgone\n${'x'.repeat(10_000)}` });
  expect(reason).not.toContain('\u001b');
  expect(reason.length).toBeLessThanOrEqual(500);
});
