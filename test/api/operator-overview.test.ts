import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOUR_MS } from '../../shared/time.js';
import type { components } from '../../client/api/index.js';
import { NEED_AFTER_MS } from '../../control-plane/domain/machines/need.js';
import { Fleet } from '../../control-plane/services/oversight/fleet.js';
import type { Platform } from '../../control-plane/services/system/platform.js';
import { query } from '../../control-plane/store/sql.js';
import type { Tx } from '../../control-plane/store/store.js';
import { eventually } from '../../scripts/eventually.js';
import type { InstanceBody } from '../harness/api-client.js';
import { pretendFull } from '../harness/full-disk.js';
import { TestControlPlane, statusIs } from '../harness/control-plane.js';

type Overview = components['schemas']['OperatorOverview'];
type Need = components['schemas']['Need'];
type DailyRevenue = components['schemas']['DailyRevenue'];

let test: TestControlPlane;
beforeAll(async () => {
  test = await TestControlPlane.start();
});
afterAll(() => test.stop());

const overview = () => test.operator.get<Overview>('/v1/operator/overview');
const need = async (kind: Need['kind']) => (await overview()).needs.find((each) => each.kind === kind);

/** The names, or the ids without one, that the list of machines or of organizations has for a need. */
async function listed(what: 'machines' | 'organizations', kind: Need['kind'], more = ''): Promise<string[]> {
  const path = `/v1/operator/${what}?need=${kind}${more}`;
  return (await test.operator.get<{ items: { name: string }[] }>(path)).items.map(({ name }) => name);
}

async function gauge(name: string): Promise<number> {
  const text = await (await fetch(`${test.url}/metrics`)).text();
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${name} `))
      ?.split(' ')[1] ?? NaN,
  );
}

it('needs nothing of an operator where there is nothing', async () => {
  expect(await overview()).toEqual({ machines: { connected: 0, away: 0, lost: 0 }, gpus: [], needs: [] });
});

it('counts each GPU once, and by the rules of the metrics', async () => {
  const agent = await test.host({ name: 'counted', gpus: 4 });
  const renter = await test.renter();
  const body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  const gpus = agent.inventory['gpus'] as {
    uuid: string;
    healthy: boolean;
    reason: string;
    model: string;
    missing?: boolean;
  }[];
  const held = (
    await test.operator.get<{ gpus: { uuid: string; instance_id: string | null }[] }>(
      `/v1/operator/machines/${agent.hostId}`,
    )
  ).gpus.find(({ instance_id }) => instance_id === id);
  // One that is rented is no less sold, and its renter pays for it: it needs an act, too.
  Object.assign(gpus.find(({ uuid }) => uuid === held?.uuid) ?? {}, { healthy: false, reason: 'Xid 79' });
  agent.beat();
  const sick = await eventually('the rented GPU to be unhealthy', () => need('gpus_unhealthy'));
  expect(sick).toMatchObject({ count: 1, items: [{ message: '1 of its GPUs, 1 of them rented: Xid 79' }] });
  expect(await gauge('gpurent_gpus_unhealthy')).toBe(1);
  expect(await gauge('gpurent_gpus{state="unhealthy"}')).toBe(0);
  expect(await gauge('gpurent_gpus_missing')).toBe(0);
  // An unhealthy one that is then no longer listed is told, too.
  const shownOf = () =>
    test.operator.get<{ missing_gpus: number; gpus: { missing: boolean }[] }>(`/v1/operator/machines/${agent.hostId}`);
  const rented = gpus.find(({ uuid }) => uuid === held?.uuid);
  Object.assign(rented ?? {}, { missing: true });
  agent.beat();
  await eventually('it to be missing', async () => (await shownOf()).missing_gpus === 1);
  expect((await shownOf()).gpus.filter(({ missing }) => missing)).toHaveLength(1);
  expect(await gauge('gpurent_gpus_missing')).toBe(1);
  expect((await need('gpus_unhealthy'))?.items).toMatchObject([
    { message: '1 of its GPUs, 1 of them rented, 1 of them missing: Xid 79' },
  ]);
  Object.assign(rented ?? {}, { missing: false });
  agent.beat();
  await eventually('it to be listed again', async () => (await gauge('gpurent_gpus_missing')) === 0);
  Object.assign(gpus[3] ?? {}, { healthy: false, reason: 'fell off the bus' });
  agent.beat();
  const gpu_model = gpus[0]?.model;
  const none = { sold: 0, free: 0, held_back: 0, unhealthy: 0, quarantined: 0, away: 0 };
  await eventually('both to be unhealthy', async () => (await gauge('gpurent_gpus_unhealthy')) === 2);
  expect((await overview()).gpus).toEqual([{ ...none, gpu_model, total: 4, sold: 1, free: 2, unhealthy: 1 }]);
  expect(await gauge('gpurent_gpus{state="unhealthy"}')).toBe(1);
  expect(await listed('machines', 'gpus_unhealthy')).toEqual(['counted']);
  expect(await listed('machines', 'machine_away')).toEqual([]);
  expect((await need('gpus_unhealthy'))?.items).toMatchObject([
    { subject: `machines/${agent.hostId}`, name: 'counted', message: '2 of its GPUs, 1 of them rented: Xid 79' },
  ]);
  await test.operator.post(`/v1/operator/machines/${agent.hostId}/cordon`);
  expect((await overview()).gpus).toMatchObject([{ sold: 1, free: 0, held_back: 2, unhealthy: 1 }]);
  agent.disconnect();
  await eventually('its absence', async () => (await overview()).machines.away === 1);
  // Who rents one has it, and pays, also while its machine is away.
  expect((await overview()).gpus).toEqual([{ ...none, gpu_model, total: 4, sold: 1, away: 3 }]);
});

it('says that the disk of the database is full, until there is room', async () => {
  const makeRoom = pretendFull(test.core);
  const none = { subject: '', name: null, message: null, since: null, machine_id: null, organization_id: null };
  expect(await need('disk_full')).toEqual({ kind: 'disk_full', count: 1, items: [none] });
  makeRoom();
  expect(await need('disk_full')).toBeUndefined();
});

it('names a machine that is away, until it is lost and removed', async () => {
  const agent = await test.host({ name: 'rack', gpus: 1 });
  agent.disconnect();
  const isNamed = async () => (await need('machine_away'))?.items.some(({ name }) => name === 'rack');
  await eventually('the machine to be away', isNamed);
  expect((await need('machine_away'))?.count).toBe(await gauge('gpurent_hosts{state="away"}'));
  await test.operator.post(`/v1/operator/machines/${agent.hostId}/lost`);
  expect(await isNamed()).toBe(false);
  expect(await listed('machines', 'machine_away')).not.toContain('rack');
  expect(await listed('machines', 'machine_lost')).toEqual(['rack']);
  expect(await listed('machines', 'machine_lost', '&name=other')).toEqual([]);
  expect(await need('machine_lost')).toMatchObject({ count: 1, items: [{ name: 'rack', machine_id: agent.hostId }] });
  await test.operator.delete(`/v1/operator/machines/${agent.hostId}`);
  expect(await need('machine_lost')).toBeUndefined();
});

it('reads again what could not be read', async () => {
  await test.host({ name: 'unread', gpus: 1 });
  const { platform } = test.core;
  let isBroken = true;
  const transact = <T>(work: (tx: Tx) => T) =>
    platform.store.transact((tx) => {
      const get: Tx['get'] = (statement) => {
        if (isBroken) throw new Error('disk I/O error');
        return tx.get(statement);
      };
      return work({ ...tx, get });
    });
  const store = Object.assign(Object.create(platform.store) as Platform['store'], { transact });
  const fleet = new Fleet({ ...platform, store });
  const idsIn = (one: Fleet) => Array.from(one.machines(), ({ machine }) => machine.id).sort();
  expect(() => idsIn(fleet)).toThrow('disk I/O error');
  isBroken = false;
  expect(idsIn(fleet)).toEqual(idsIn(platform.fleet));
});

it('names the first ten of a kind and counts the others', async () => {
  const before = (await need('machine_away'))?.count ?? 0;
  const token = await test.operator.post<{ token: string }>('/v1/operator/enrollment-tokens', { max_uses: 12 });
  expect(token.token).toMatch(/^enr_/);
  const first = await test.host({ name: 'many', gpus: 1 });
  first.disconnect();
  for (let count = 1; count < 12; count++) (await test.host({ name: `many ${count}`, gpus: 1 })).disconnect();
  const later = query.updateTable('machines').set({ last_seen_at: test.clock.now() + 1 });
  test.core.platform.store.transact((tx) => tx.run(later.where('id', '=', first.hostId)));
  const many = await eventually('all to be away', async () => {
    const found = await need('machine_away');
    return found?.count === before + 12 && found;
  });
  expect(many.items).toHaveLength(10);
  expect(await listed('machines', 'machine_away')).toHaveLength(many.count);
  expect(await listed('machines', 'machine_away', '&name=many')).toHaveLength(12);
  const times = many.items.map(({ since }) => since ?? 'never');
  expect(times).toEqual(times.toSorted());
  expect(JSON.stringify(await overview()).length).toBeLessThan(6_000);
});

it('names commands that wait for longer than the alert allows, and what for', async () => {
  const agent = await test.host({ name: 'slow', gpus: 1, automatic: false });
  const renter = await test.renter();
  const body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', { ...body, label: 'train' });
  await eventually('the command', () => agent.held[0]);
  expect(await need('command_stuck')).toBeUndefined();
  test.clock.advance(NEED_AFTER_MS.command_stuck + 1);
  const stuck = await need('command_stuck');
  const { organizationId: organization_id } = renter;
  expect(stuck).toMatchObject({ items: [{ subject: `instances/${id}`, machine_id: agent.hostId, organization_id }] });
  expect(stuck?.count).toBe(1);
  expect(stuck?.items[0]?.message).toMatch(
    `provision of instance “train” ${id.slice(0, 8)} of Renter's organization: the host is not connected`,
  );
  expect(await gauge('gpurent_commands_oldest_seconds{kind="provision"}')).toBeGreaterThan(900);
});

it('names no deploy that makes progress, by the same rule as the alert and the event', async () => {
  const agent = await test.host({ name: 'pulls', gpus: 1, automatic: false });
  const renter = await test.renter();
  const body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await eventually('the command', () => agent.held[0]);
  const stuckSubjects = async () => (await need('command_stuck'))?.items.map(({ subject }) => subject) ?? [];
  const { store } = test.core.platform;
  const rest = async (ms: number) => {
    const amend = query.updateTable('instances').set({ progress_at: test.clock.now() - ms });
    store.transact((tx) => tx.run(amend.where('id', '=', id)));
    return stuckSubjects();
  };
  test.clock.advance(2 * NEED_AFTER_MS.command_stuck);
  expect(await rest(NEED_AFTER_MS.command_stuck)).not.toContain(`instances/${id}`);
  expect(await rest(NEED_AFTER_MS.command_stuck + 1)).toContain(`instances/${id}`);
});

it('names workloads in quarantine, disputes and suspended organizations', async () => {
  const agent = await test.host({ name: 'restored', gpus: 1 });
  agent.disconnect();
  const workload = { sequence: 7, sshPort: 40_123, gpuUuids: [], diskGb: 1, lines: [] };
  agent.workloads.set(randomUUID(), { state: 'WORKLOAD_STATE_RUNNING', ...workload });
  await agent.connect();
  const quarantined = await eventually('the quarantine', () => need('workload_quarantined'));
  expect(quarantined).toMatchObject({ count: 1, items: [{ name: 'restored', machine_id: agent.hostId }] });
  expect(quarantined.count).toBe(await gauge('gpurent_workloads_quarantined'));

  const { api, organizationId: organization_id } = await test.renter();
  const body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
  await statusIs(api, (await api.post<InstanceBody>('/v1/instances', body)).id, 'running');
  const path = `/v1/operator/organizations/${organization_id}`;
  await test.operator.post(`${path}/dispute`);
  expect(await need('payment_disputed')).toMatchObject({ count: 1, items: [{ organization_id }] });
  expect(await listed('organizations', 'payment_disputed')).toEqual(["Renter's organization"]);
  await test.operator.delete(`${path}/dispute`);
  expect(await need('payment_disputed')).toBeUndefined();
  expect(await listed('organizations', 'payment_disputed')).toEqual([]);
  expect(await listed('organizations', 'organization_suspended')).toEqual([]);
  await test.operator.post(`${path}/suspend`, { reason: 'it attacks others' });
  expect(await need('organization_suspended')).toMatchObject({
    items: [{ organization_id, message: 'it attacks others' }],
  });
  expect(await listed('organizations', 'organization_suspended')).toEqual(["Renter's organization"]);
  const both = await test.operator.request('GET', '/v1/operator/organizations?need=payment_disputed&name=x');
  expect(both).toMatchObject({ status: 422, body: { code: 'VALIDATION_FAILED' } });
});

it('names a worker that fails', async () => {
  const { workerRuns } = test.core.platform;
  const fail = () =>
    workerRuns.record('purge', () => {
      throw new Error('disk I/O error');
    });
  const since = new Date(test.clock.now()).toISOString();
  expect(fail).toThrow();
  test.clock.advance(HOUR_MS);
  expect(fail).toThrow();
  expect(await need('worker_failing')).toMatchObject({ items: [{ name: 'purge', message: 'disk I/O error', since }] });
  expect(await gauge('gpurent_worker_failing{worker="purge"}')).toBe(1);
  workerRuns.record('purge', () => undefined);
  expect(await need('worker_failing')).toBeUndefined();
});

describe('the revenue of days', () => {
  const revenue = (days: number) => test.operator.get<DailyRevenue>(`/v1/operator/revenue-daily?days=${days}`);

  it('is the sum over machines, without gaps, and says on which GPUs it rests', async () => {
    const agent = await test.host({ name: 'earns', gpus: 1 });
    const renter = await test.renter();
    const body = { offer_id: await test.offer(agent, 1, 3_600_000), template_id: await test.template(), disk_gb: 10 };
    const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
    await statusIs(renter.api, id, 'running');
    expect((await revenue(3)).days).toHaveLength(3);
    for (let hour = 0; hour < 25; hour++) {
      test.clock.advance(HOUR_MS);
      agent.beat();
      await eventually('the charge', async () => {
        test.core.workers.runAll();
        const { items } = await test.operator.get<{ items: { gpu_micro: number }[] }>(
          `/v1/operator/revenue?machine_id=${agent.hostId}`,
        );
        return items.reduce((sum, { gpu_micro }) => sum + gpu_micro, 0) > hour * 3_600_000;
      });
    }
    const { days, models } = await revenue(3);
    const rows = await test.operator.get<{ items: { date: string; gpu_micro: number; disk_micro: number }[] }>(
      '/v1/operator/revenue?days=3',
    );
    for (const { date, ...sums } of days) {
      const its = rows.items.filter((row) => row.date === date);
      const sum = (name: 'gpu_micro' | 'disk_micro') => its.reduce((total, row) => total + row[name], 0);
      expect(sums).toEqual({ gpu_micro: sum('gpu_micro'), disk_micro: sum('disk_micro'), machines: its.length });
    }
    const [yesterday] = days.slice(-2);
    expect(yesterday?.gpu_micro).toBeGreaterThan(0);
    expect(models.reduce((total, { gpu_micro }) => total + gpu_micro, 0)).toBe(yesterday?.gpu_micro);
    expect(models[0]?.gpu_model).toBe((agent.inventory['gpus'] as { model: string }[])[0]?.model);
  });
});

it('a host of which a clock is more than two seconds wrong needs an act, until all of a minute shows it right', async () => {
  const agent = await test.host({ name: 'fast', gpus: 1 });
  const beat = async (aheadMs: number, fields: { dockerAheadMs?: number } = {}) => {
    agent.beat({ atMs: test.clock.now() + aheadMs, ...fields });
    await agent.roundTrip();
  };
  const clocks = async () => {
    const machine = await test.operator.get<Record<string, unknown>>(`/v1/operator/machines/${agent.hostId}`);
    return [machine['clock_ahead_ms'], machine['docker_clock_ahead_ms']];
  };
  expect(await clocks()).toEqual([null, null]);
  // A heartbeat that comes late makes the clock look behind.
  await beat(-5_000);
  await beat(-40, { dockerAheadMs: 0 });
  expect(await clocks()).toEqual([-40, -40]);
  expect(await need('clock_off')).toBeUndefined();
  await beat(-40, { dockerAheadMs: -2_000 });
  expect((await need('clock_off'))?.items).toMatchObject([
    { name: 'fast', message: 'The clock of its Docker is 2.0 seconds behind' },
  ]);
  await beat(3_600_000);
  expect(await clocks()).toEqual([3_600_000, null]);
  expect((await need('clock_off'))?.items).toMatchObject([
    { name: 'fast', message: 'The clock of its host is 3600.0 seconds ahead' },
  ]);
  expect(await gauge('gpurent_hosts_clock_off')).toBe(1);
  expect(await listed('machines', 'clock_off')).toEqual(['fast']);
  for (let beats = 0; beats < 6; beats++) await beat(0);
  expect(await clocks()).toEqual([0, null]);
  expect(await gauge('gpurent_hosts_clock_off')).toBe(0);
  // What no clock shows is refused, and changes nothing.
  await beat(Number.MAX_SAFE_INTEGER - test.clock.now());
  expect(await clocks()).toEqual([0, null]);
  agent.disconnect();
  await eventually('its absence', async () => !(await isConnected(agent.hostId)));
  expect(await clocks()).toEqual([null, null]);
});

describe('the limits are those of the alerts', () => {
  const rules = readFileSync(fileURLToPath(new URL('../../packaging/alerts.yml', import.meta.url)), 'utf8');

  it.each([
    ['GpurentBackupOverdue', 'gpurent_backup_overdue_seconds', NEED_AFTER_MS.backup_overdue],
    ['GpurentCommandsStuck', 'max by (kind) (gpurent_commands_oldest_seconds)', NEED_AFTER_MS.command_stuck],
    ['GpurentSettlementLags', 'gpurent_settlement_lag_seconds', NEED_AFTER_MS.settlement_late],
    ['GpurentMailWaits', 'gpurent_mail_oldest_seconds', NEED_AFTER_MS.mail_waiting],
    ['GpurentHostAway', 'gpurent_hosts{state="away"}', 0],
    ['GpurentQuarantine', 'gpurent_workloads_quarantined', 0],
    ['GpurentGpusUnhealthy', 'gpurent_gpus_unhealthy', 0],
    ['GpurentGpusMissing', 'gpurent_gpus_missing', 0],
    ['GpurentGpusDisputed', 'gpurent_gpus_disputed', 0],
    ['GpurentHostClockOff', 'gpurent_hosts_clock_off', 0],
    ['GpurentClockUntrusted', 'gpurent_clock_untrusted', 0],
    ['GpurentStopIgnored', 'gpurent_stops_ignored', 0],
    ['GpurentAdminRefused', 'gpurent_admins_refused', 0],
  ])('%s', (alert, metric, afterMs) => {
    const expression = new RegExp(`alert: ${alert}\\n\\s+expr: (.*)`).exec(rules)?.[1];
    expect(expression).toBe(`${metric} > ${afterMs / 1_000}`);
  });
});

it('counts no GPU of a lost machine as sold: what ran there has ended', async () => {
  const agent = await test.host({ name: 'gone', gpus: 1 });
  const renter = await test.renter();
  const body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  agent.disconnect();
  await eventually('its absence', async () => !(await isConnected(agent.hostId)));
  const sums = async () => (await overview()).gpus.map(({ sold, away }) => ({ sold, away }))[0];
  const before = await sums();
  await test.operator.post(`/v1/operator/machines/${agent.hostId}/lost`);
  expect(await sums()).toEqual({ sold: (before?.sold ?? NaN) - 1, away: (before?.away ?? NaN) + 1 });
});

async function isConnected(id: string): Promise<boolean> {
  return (await test.operator.get<{ connected: boolean }>(`/v1/operator/machines/${id}`)).connected;
}
