import type BetterSqlite3 from 'better-sqlite3';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'vitest';
import { backUp, restore } from '../../control-plane/store/backup.js';
import type { InstanceBody } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import { Pipe, linesOnceThereAre } from '../harness/audit-out.js';
import { PUBLIC_URL, statusIs, type Renter, type TestControlPlane } from '../harness/control-plane.js';
import type { FakeAgent } from '../harness/fake-agent.js';
import { isMailing } from '../harness/mails.js';
import { TestSmtp } from '../harness/smtp.js';
import { HOUR_MS, MINUTE_MS, type AlertCase } from './cases.js';
import { certificateEnds } from './certificate-case.js';
import { diskCases } from './disk-cases.js';
import { gpuCases, machineOf } from './gpu-cases.js';
import type { Installation } from './installation.js';
import { refusedAdmin } from './leaver-case.js';
import { oldCopy } from './old-copy.js';

interface Deploy {
  offer_id: string;
  template_id: string;
  disk_gb: number;
}

/** What a renter asks for to get a GPU of this host. */
async function deployOn(test: TestControlPlane, agent: FakeAgent): Promise<Deploy> {
  return { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
}

/** An instance that runs on a host of its own. */
async function rent(test: TestControlPlane): Promise<{ agent: FakeAgent; renter: Renter; id: string }> {
  const agent = await test.host({ gpus: 1 });
  const renter = await test.renter();
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', await deployOn(test, agent));
  await statusIs(renter.api, id, 'running');
  return { agent, renter, id };
}

/** What a host that answers nothing by itself is told about an instance. */
const commandFor = (agent: FakeAgent, instanceId: string) =>
  eventually('the command', () => agent.held.find((held) => held.instanceId === instanceId));

/** A deploy of this renter that its host fails. */
async function failDeploy(agent: FakeAgent, { api }: Renter, body: Deploy, code: string): Promise<void> {
  const { id } = await api.post<InstanceBody>('/v1/instances', body);
  agent.fail(await commandFor(agent, id), code, 'it cannot be done');
  await statusIs(api, id, 'error');
}

/** The connection that is the control plane's own. */
const connectionOf = (test: TestControlPlane) =>
  (test.core.platform.store as unknown as { connection: BetterSqlite3.Database }).connection;

const down: AlertCase = {
  how: 'the daemon has ended',
  summary: /^The control plane does not answer$/,
  async provoke({ controlPlane: test }) {
    await test.core.stop();
    return () => test.boot();
  },
};

const clockSet: AlertCase = {
  how: 'the clock is set by two minutes',
  summary:
    /^The clock of the control plane was wrong or is, and what cannot be undone waits until an operator confirms it$/,
  async provoke({ controlPlane: test }) {
    test.clock.step(2 * MINUTE_MS);
    return () => test.operator.post('/v1/operator/clock/confirm');
  },
};

const hostClockOff: AlertCase = {
  how: 'the clock of a host is three seconds ahead',
  summary: /^A clock of 1 host\(s\) is more than two seconds wrong$/,
  async provoke({ controlPlane: test }) {
    const agent = await test.host({ gpus: 1 });
    const beat = async (aheadMs: number) => {
      agent.beat({ atMs: test.clock.now() + aheadMs });
      await agent.roundTrip();
    };
    await beat(3_000);
    return async () => {
      // What it has said in the last minute counts.
      for (let beats = 0; beats < 6; beats++) await beat(0);
    };
  },
};

const BACKUP_OVERDUE = /^A backup of the database is more than an hour late, or its folder cannot be used$/;

/** From now on copies are made into a folder here, once a day. */
async function backUpDaily({ controlPlane: test, folder }: Installation): Promise<string> {
  const copies = join(folder, 'copies');
  await test.restart({ backups: { folder: copies, everyMs: 24 * HOUR_MS, keep: 2 } });
  return copies;
}

const overdueBackups: AlertCase[] = [
  {
    how: 'the folder has vanished',
    summary: BACKUP_OVERDUE,
    async provoke(installation) {
      const copies = await backUpDaily(installation);
      await installation.pass(MINUTE_MS);
      rmSync(copies, { recursive: true });
      return async () => {
        mkdirSync(copies, { mode: 0o700 });
        await installation.pass(MINUTE_MS);
      };
    },
  },
  {
    how: 'the folder is a file',
    summary: BACKUP_OVERDUE,
    async provoke(installation) {
      writeFileSync(join(installation.folder, 'copies'), '');
      const copies = await backUpDaily(installation);
      return async () => {
        rmSync(copies);
        mkdirSync(copies, { mode: 0o700 });
        await installation.pass(MINUTE_MS);
      };
    },
  },
  {
    how: 'the disk of the copies has been full for more than an hour',
    summary: BACKUP_OVERDUE,
    async provoke(installation) {
      const { controlPlane: test, disks } = installation;
      await test.restart({ backups: { folder: join(disks.other.path, 'copies'), everyMs: HOUR_MS, keep: 2 } });
      await installation.pass(MINUTE_MS);
      disks.other.fill();
      await installation.pass(2 * HOUR_MS);
      expect(test.logged(50).join()).toContain('no backup could be made');
      return async () => {
        disks.other.makeRoom();
        await installation.pass(MINUTE_MS);
      };
    },
  },
];

const hostsAway: AlertCase = {
  how: 'two hosts are silent; one comes back, the other is declared lost',
  summary: /^2 host\(s\) have not been connected for five minutes$/,
  async provoke(installation) {
    const { controlPlane: test } = installation;
    const [back, lost] = [await test.host({ gpus: 1 }), await test.host({ gpus: 1 })];
    for (const agent of [back, lost]) agent.disconnect();
    await installation.pass(5 * MINUTE_MS);
    expect((await machineOf(test, lost)).connected).toBe(false);
    return async () => {
      await back.connect();
      await test.operator.post(`/v1/operator/machines/${lost.hostId}/lost`);
    };
  },
};

const hostDeleted: AlertCase = {
  how: 'a host is silent for ever, and is deleted',
  summary: /^1 host\(s\) have not been connected for five minutes$/,
  async provoke(installation) {
    const { controlPlane: test } = installation;
    const { agent } = await rent(test);
    agent.disconnect();
    await installation.pass(5 * MINUTE_MS);
    return async () => {
      await test.operator.post(`/v1/operator/machines/${agent.hostId}/lost`);
      await test.operator.delete(`/v1/operator/machines/${agent.hostId}`);
    };
  },
};

const stuckDestroy: AlertCase = {
  how: 'a destroy waits for Docker',
  summary: /^A host has made no progress with a destroy for 16m 0s$/,
  async provoke(installation) {
    const { agent, renter, id } = await rent(installation.controlPlane);
    agent.automatic = false;
    await renter.api.delete(`/v1/instances/${id}`);
    await installation.pass(16 * MINUTE_MS);
    return async () => agent.done(await commandFor(agent, id));
  },
};

const ignoredStop: AlertCase = {
  how: 'a host does not confirm a stop',
  summary: /^1 instance\(s\) are charged though their stop has timed out$/,
  also: ['GpurentCommandsStuck'],
  async provoke(installation) {
    const { controlPlane: test } = installation;
    const { agent, renter, id } = await rent(test);
    agent.automatic = false;
    await renter.api.post(`/v1/instances/${id}/stop`);
    await installation.pass(35 * MINUTE_MS);
    const list = () => test.operator.get<{ items: { instance_id: string }[] }>('/v1/operator/ignored-stops');
    expect((await list()).items).toMatchObject([{ instance_id: id, machine_id: agent.hostId, is_open: true }]);
    return async () => {
      agent.done(await commandFor(agent, id));
      await statusIs(renter.api, id, 'stopped');
      await test.operator.post(`/v1/operator/instances/${id}/credit-ignored-stop`, { reason: 'its host' });
      expect((await list()).items).toEqual([]);
    };
  },
};

const quarantine: AlertCase = {
  how: 'a restored backup has never heard of two workloads',
  summary: /^2 workload\(s\) are in quarantine: the database does not know them, and nobody pays for them$/,
  async provoke({ controlPlane: test, folder }) {
    const agent = await test.host({ gpus: 2 });
    const renter = await test.renter();
    const body = await deployOn(test, agent);
    const copy = join(folder, 'before.db');
    backUp(test.databaseFile, copy);
    for (let count = 0; count < 2; count++) {
      const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
      await statusIs(renter.api, id, 'running');
    }
    await test.core.stop();
    restore(copy, test.databaseFile, test.clock.now());
    await test.boot();
    await agent.connect();
    const list = async () => (await test.operator.get<{ items: { id: string }[] }>('/v1/operator/quarantine')).items;
    const found = await list();
    expect(found).toMatchObject([{ machine_id: agent.hostId }, { organization_id: renter.organizationId }]);
    return async () => {
      await test.operator.post(`/v1/operator/quarantine/${found[0]?.id}/adopt`, {});
      await test.operator.post(`/v1/operator/quarantine/${found[1]?.id}/remove`);
      await eventually('nothing to be left', async () => (await list()).length === 0);
      expect((await renter.api.get<{ items: object[] }>('/v1/instances')).items).toMatchObject([{ status: 'running' }]);
    };
  },
};

const COMMANDS_FAILING =
  /^Many commands fail through a fault of their hosts, or commands of several organizations fail on one host$/;

const failingCommands: AlertCase[] = [
  {
    how: 'six fail by a fault of their host, the first since the start of the control plane',
    summary: COMMANDS_FAILING,
    lasts: true,
    async provoke({ controlPlane: test }) {
      const agent = await test.host({ gpus: 8, automatic: false });
      const renter = await test.renter();
      const body = await deployOn(test, agent);
      for (let count = 0; count < 6; count++) await failDeploy(agent, renter, body, 'NO_FREE_PORT');
      return async () => {
        await test.operator.post(`/v1/operator/machines/${agent.hostId}/cordon`);
        const offer = await renter.api.get<{ state: string }>(`/v1/offers/${body.offer_id}`);
        expect(offer.state).not.toBe('available');
      };
    },
  },
  {
    how: 'images of three organizations fail on one host',
    summary: COMMANDS_FAILING,
    async provoke(installation) {
      const { controlPlane: test } = installation;
      const agent = await test.host({ gpus: 8, automatic: false });
      const body = await deployOn(test, agent);
      for (let count = 0; count < 3; count++) await failDeploy(agent, await test.renter(), body, 'IMAGE_UNAVAILABLE');
      return async () => {
        await test.operator.post(`/v1/operator/machines/${agent.hostId}/cordon`);
        await installation.pass(15 * MINUTE_MS);
      };
    },
  },
];

const lateSettlement: AlertCase = {
  how: 'one organization cannot be settled, of two',
  summary: /^Balances are settled [3-5]m .* late$/,
  async provoke(installation) {
    const { controlPlane: test } = installation;
    const { renter } = await rent(test);
    await rent(test);
    const broken = `BEFORE UPDATE OF balance_micro ON organizations WHEN new.id = '${renter.organizationId}'`;
    connectionOf(test).exec(`CREATE TEMP TRIGGER broken ${broken} BEGIN SELECT RAISE(ABORT, 'it is broken'); END`);
    await installation.pass(5 * MINUTE_MS);
    const told = `organization ${renter.organizationId} cannot be settled: it is broken`;
    expect(test.logged(50).some((line) => line.includes('"worker":"settle"') && line.includes(told))).toBe(true);
    return async () => {
      connectionOf(test).exec('DROP TRIGGER broken');
      await installation.pass(MINUTE_MS);
    };
  },
};

const mailWaits: AlertCase = {
  how: 'the mail server is away',
  summary: /^A mail has waited for 1h 1m .*s$/,
  async provoke(installation) {
    const { controlPlane: test } = installation;
    const smtp = await TestSmtp.start();
    await test.restart({ mail: smtp.settings, publicUrl: PUBLIC_URL });
    await smtp.stop();
    const { api } = await test.renter();
    await api.post('/v1/orgs/current/invites', { email: 'guest@example.com' });
    await installation.pass(61 * MINUTE_MS);
    return async () => {
      await smtp.back();
      // An attempt under way is over once the clock has moved by half a minute.
      const settled = () => eventually('no mail to be on its way', () => !isMailing(test));
      const passing = { clock: { advance: (ms: number) => installation.pass(ms) }, stepMs: 10_000, parties: [settled] };
      await advanceUntil('the mail to be sent', passing, () =>
        smtp.received.some(({ to }) => to.includes('guest@example.com')),
      );
      await smtp.stop();
    };
  },
};

const nothingDelivered: AlertCase = {
  how: 'no name can be resolved',
  summary: /^No webhook was delivered in half an hour, and several attempts have failed$/,
  lasts: true,
  async provoke(installation) {
    const { controlPlane: test } = installation;
    for (let count = 0; count < 3; count++) {
      const { api } = await test.renter();
      await api.post('/v1/webhook-endpoints', { url: 'https://hooks.example/hooks' });
      for (let key = 0; key < 5; key++) await api.post('/v1/api-keys', { name: `key ${key}` });
    }
    await installation.pass(29 * MINUTE_MS);
    return async () => undefined;
  },
};

const auditWaits: AlertCase = {
  how: 'the reader of standard output reads nothing',
  summary: /^Audit lines wait for stdout: the oldest for 16m .*s$/,
  async provoke(installation) {
    const { controlPlane: test } = installation;
    const pipe = new Pipe();
    test.auditFile = pipe.file;
    await test.restart({ auditOut: { stdout: true } });
    await installation.pass(1_000);
    pipe.fill();
    await test.renter();
    await installation.pass(16 * MINUTE_MS);
    return async () => {
      pipe.drain();
      await linesOnceThereAre(test, 2, () => pipe.lines());
      await installation.pass(1_000);
    };
  },
};

const failingWorker: AlertCase = {
  how: 'what a worker has to write is refused every time',
  summary: /^The background worker last-used keeps failing$/,
  async provoke(installation) {
    const { controlPlane: test } = installation;
    const { api } = await test.renter();
    const { secret } = await api.post<{ secret: string }>('/v1/api-keys', { name: 'ci' });
    const broken = `BEFORE UPDATE OF last_used_at ON api_keys BEGIN SELECT RAISE(ABORT, 'it is broken'); END`;
    connectionOf(test).exec(`CREATE TEMP TRIGGER broken ${broken}`);
    await test.api.as(secret).get('/v1/offers');
    await installation.pass(MINUTE_MS);
    const { items } = await test.operator.get<{ items: { name: string; last_failure: string }[] }>(
      '/v1/operator/workers',
    );
    expect(items.find(({ name }) => name === 'last-used')?.last_failure).toBe('it is broken');
    return async () => {
      connectionOf(test).exec('DROP TRIGGER broken');
      await installation.pass(MINUTE_MS);
    };
  },
};

/** The disk is so slow that each of these takes this long, and keeps everything else waiting. */
function slowDown(test: TestControlPlane, table: string, ms: number): () => void {
  const connection = connectionOf(test);
  const cell = new Int32Array(new SharedArrayBuffer(4));
  connection.function('dwell', { directOnly: false }, () => (Atomics.wait(cell, 0, 0, ms), null));
  connection.exec(`CREATE TEMP TRIGGER slow AFTER INSERT ON ${table} BEGIN SELECT dwell(); END`);
  return () => void connection.exec('DROP TRIGGER slow');
}

/** Runs in a process of its own: all that runs beside it waits, too. */
const busy: AlertCase = {
  how: 'every few seconds a write to a slow disk keeps everything else waiting',
  // Its process has the same lag, and it is not the control plane.
  agent: true,
  everyMs: 4_000,
  summary: /^The control plane is too busy$/,
  async provoke({ controlPlane: test }) {
    const { api } = await test.renter();
    const speedUp = slowDown(test, 'templates', 1_200);
    const over = new AbortController();
    const writing = (async () => {
      while (!over.signal.aborted) {
        await api.post('/v1/templates', { name: 'T', image: 't:1' });
        await pause(2_000);
      }
    })();
    return async () => {
      over.abort();
      await writing;
      expect(test.logged(30).some((line) => /"route":"\/v1\/templates".*"ms":1[2-9]\d\d\b/.test(line))).toBe(true);
      speedUp();
    };
  },
};

/** By alert. */
export const controlPlaneCases: Readonly<Record<string, readonly AlertCase[]>> = {
  GpurentDown: [down],
  ...diskCases,
  GpurentClockUntrusted: [clockSet],
  GpurentHostClockOff: [hostClockOff],
  GpurentCertificateExpires: [certificateEnds],
  GpurentBackupOverdue: overdueBackups,
  GpurentCopyOld: [oldCopy],
  GpurentHostAway: [hostsAway, hostDeleted],
  GpurentCommandsStuck: [stuckDestroy],
  GpurentQuarantine: [quarantine],
  GpurentStopIgnored: [ignoredStop],
  GpurentAdminRefused: [refusedAdmin],
  GpurentCommandsFailing: failingCommands,
  ...gpuCases,
  GpurentSettlementLags: [lateSettlement],
  GpurentWorkerFailing: [failingWorker],
  GpurentMailWaits: [mailWaits],
  GpurentWebhooksFailing: [nothingDelivered],
  GpurentAuditOutLags: [auditWaits],
  GpurentEventLoopLags: [busy],
};
