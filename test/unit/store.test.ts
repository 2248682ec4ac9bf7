import BetterSqlite3 from 'better-sqlite3';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CHARGE_GROUPS } from '../../control-plane/domain/money/money.js';
import { parseConfig } from '../../control-plane/config.js';
import { restore } from '../../control-plane/store/backup.js';
import { migrations } from '../../control-plane/store/migrations/index.js';
import type { WorkerName } from '../../control-plane/domain/worker-name.js';
import { Store } from '../../control-plane/store/store.js';
import { query } from '../../control-plane/store/sql.js';
import { checkKey } from '../../control-plane/services/secrets/key-check.js';
import { Encryption } from '../../control-plane/services/secrets/encryption.js';
import { ManualClock } from '../harness/manual-clock.js';

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-store-'));
  file = join(folder, 'gpurent.db');
});
afterEach(() => rmSync(folder, { recursive: true }));

const epoch = query.selectFrom('meta').select('value').where('key', '=', 'epoch');
const raise = query.updateTable('meta').set({ value: '2' }).where('key', '=', 'epoch');

it('keeps a second control plane off the file until the first has closed it', () => {
  const first = new Store(file, new ManualClock());
  expect(() => new Store(file, new ManualClock())).toThrow(/another control plane is running/);
  first.close();
  new Store(file, new ManualClock()).close();
});

it('undoes everything when a use case throws, and wakes nobody', () => {
  const nudged: WorkerName[] = [];
  const store = new Store(file, new ManualClock(), { onNudge: (worker) => nudged.push(worker) });
  let called = false;
  expect(() =>
    store.transact((tx) => {
      tx.run(raise);
      tx.nudge('dispatch');
      tx.afterCommit(() => (called = true));
      throw new Error('refused');
    }),
  ).toThrow('refused');
  expect(store.transact((tx) => tx.get(epoch)?.value)).toBe('1');
  expect(nudged).toEqual([]);
  expect(called).toBe(false);
  store.transact((tx) => {
    tx.run(raise);
    tx.nudge('dispatch');
    tx.nudge('dispatch');
  });
  expect(nudged).toEqual(['dispatch']);
  store.close();
});

it('finds what it wrote, at full durability, when it is opened again', () => {
  const store = new Store(file, new ManualClock());
  store.transact((tx) => tx.run(raise));
  store.close();
  const again = new Store(file, new ManualClock());
  expect(again.transact((tx) => tx.get(epoch)?.value)).toBe('2');
  expect(again.settings()).toEqual({ journal_mode: 'wal', synchronous: 2, foreign_keys: 1 });
  again.close();
});

it('is copied before a newer release changes its form, and stays as it was when that fails', () => {
  const old = new Store(file, new ManualClock());
  old.transact((tx) => tx.run(raise));
  old.close();
  const copy = `${file}.schema-${migrations.length}`;
  const broken = { name: 'broken', sql: 'ALTER TABLE meta ADD COLUMN note TEXT; DROP TABLE nowhere' };
  const sound = { name: 'sound', sql: 'ALTER TABLE meta ADD COLUMN note TEXT' };
  for (const step of [broken, broken]) {
    expect(() => new Store(file, new ManualClock(), { steps: [...migrations, step] })).toThrow(
      /no such table: nowhere/,
    );
  }
  new Store(file, new ManualClock()).close();
  new Store(file, new ManualClock(), { steps: [...migrations, sound] }).close();
  expect(() => new Store(file, new ManualClock())).toThrow(
    `or restore what it was before ("gpurent-control-plane restore ${copy}")`,
  );
  // The release before takes its copy back.
  const { replaced } = restore(copy, file, 1);
  expect(replaced).not.toBeNull();
  const again = new Store(file, new ManualClock());
  expect(again.transact((tx) => Number(tx.get(epoch)?.value))).toBeGreaterThanOrEqual(2);
  again.close();
});

it('restores a copy that was made before its columns were renamed', () => {
  const older = join(dirname(file), 'older.db');
  new Store(older, new ManualClock(), { steps: migrations.slice(0, 9) }).close();
  const database = new BetterSqlite3(older);
  database.exec(`INSERT INTO machines (id, name, region, public_address, arch, cpu_model, cpu_cores, memory_mb, disk_gb, disk_quota,
    vm_capable, gpu_release_supported, enrolled_at) VALUES ('m', '', '', '', '', '', 1, 1, 1, '', 0, 0, 0);
    INSERT INTO organizations (id, name, balance_micro, low_since, created_at) VALUES ('o', '', -1, 5, 0);
    UPDATE meta SET value = '1' WHERE key = 'epoch'; INSERT INTO meta VALUES ('epoch', '1') ON CONFLICT DO NOTHING`);
  database.close();
  restore(older, file, 7_000);
  const store = new Store(file, new ManualClock());
  const machine = store.transact((tx) => tx.get(query.selectFrom('machines').selectAll()));
  const organization = store.transact((tx) => tx.get(query.selectFrom('organizations').selectAll()));
  expect(machine?.needs_resync).toBe(1);
  expect(organization?.exhausted_since).toBe(7_000);
  store.close();
});

it('keeps the commands of a store that is older than replaced access', () => {
  const old = new Store(file, new ManualClock(), { steps: migrations.slice(0, 4) });
  old.close();
  const database = new BetterSqlite3(file);
  database.exec(`INSERT INTO machines (id, name, region, public_address, arch, cpu_model, cpu_cores, memory_mb, disk_gb, disk_quota,
    vm_capable, gpu_release_supported, enrolled_at) VALUES ('m', '', '', '', '', '', 1, 1, 1, '', 0, 0, 0);
    INSERT INTO commands (id, instance_id, machine_id, sequence, kind, state, created_at, next_send_at, accepted_at)
    VALUES ('c', 'i', 'm', 3, 'stop', 'open', 1, 2, 5)`);
  database.close();
  const store = new Store(file, new ManualClock());
  const command = store.transact((tx) => tx.get(query.selectFrom('commands').selectAll()));
  expect(command).toMatchObject({ id: 'c', sequence: 3, kind: 'stop', state: 'open', next_send_at: 2, accepted_at: 5 });
  store.close();
});

it('knows which instances wait for their host in a store that is older than the index of them', () => {
  new Store(file, new ManualClock(), { steps: migrations.slice(0, 36) }).close();
  const database = new BetterSqlite3(file);
  database.pragma('foreign_keys = OFF');
  database.exec(`INSERT INTO machines (id, name, region, public_address, arch, cpu_model, cpu_cores, memory_mb, disk_gb, disk_quota,
    vm_capable, gpu_release_supported, enrolled_at) VALUES ('m', '', '', '', '', '', 1, 1, 1, '', 0, 0, 0);
    INSERT INTO instances (id, organization_id, machine_id, offer_id, template_id, status, num_gpus, disk_gb, price_per_hour_micro,
    storage_price_per_gb_hour_micro, template_snapshot, ssh_user, deployed_by, created_at, status_changed_at, progress_at)
    VALUES ('i', 'o', 'm', '', '', 'stopping', 1, 1, 1, 1, '', '', '', 7, 8, 8)`);
  const command = (id: string, instance: string, state: string) =>
    database.exec(`INSERT INTO commands (id, instance_id, machine_id, sequence, kind, state, created_at, next_send_at)
      VALUES ('${id}', '${instance}', 'm', ${id}, 'stop', '${state}', 8, 8)`);
  command('1', 'i', 'done');
  command('2', 'i', 'open');
  command('3', 'quarantined', 'open');
  database.close();
  const store = new Store(file, new ManualClock());
  const rows = store.transact((tx) => tx.all(query.selectFrom('commands').select(['id', 'instance_created_at'])));
  expect(Object.fromEntries(rows.map((row) => [row.id, row.instance_created_at]))).toEqual({ 1: null, 2: 7, 3: null });
  store.close();
});

it('keeps the caps of a store that has all caps of an owner in one row', () => {
  new Store(file, new ManualClock(), { steps: migrations.slice(0, 38) }).close();
  const database = new BetterSqlite3(file);
  database.exec(`INSERT INTO users (id, email, name, password_hash, created_at) VALUES ('u', '', '', '', 0);
    INSERT INTO organizations (id, name, created_at) VALUES ('o', '', 0);
    INSERT INTO api_keys (id, organization_id, creator_id, name, kind, prefix, secret_hash, created_at)
    VALUES ('k', 'o', 'u', '', 'team', '', '', 0);
    INSERT INTO spend_caps (id, organization_id, api_key_id, burn_per_hour_micro, day_micro, month_micro, set_at, day_from,
    month_from, told_day, told_day_percent, told_month, told_month_percent)
    VALUES ('o', 'o', NULL, 11, NULL, 33, 5, 5, 3, NULL, NULL, 20454, 80), ('k', 'o', 'k', NULL, 0, NULL, 7, 6, 7, 20460, 100, NULL, NULL);
    INSERT INTO earlier_limits VALUES (4, 'o', 'k', 'day', 22, 1, 6, 9)`);
  database.close();
  const store = new Store(file, new ManualClock());
  const [caps, earlier] = store.transact((tx) => [
    tx.all(query.selectFrom('spend_caps').selectAll().orderBy('owner_id').orderBy('kind')),
    tx.all(query.selectFrom('earlier_limits').selectAll()),
  ]);
  const [key, organization] = [
    { owner_id: 'k', api_key_id: 'k' },
    { owner_id: 'o', api_key_id: null },
  ].map((owner) => ({
    ...owner,
    organization_id: 'o',
  }));
  const untold = { told_day: null, told_percent: null };
  expect(caps).toEqual([
    { ...key, kind: 'day', amount_micro: 0, set_at: 7, from_at: 6, told_day: 20_460, told_percent: 100 },
    { ...organization, kind: 'burn_per_hour', amount_micro: 11, set_at: 5, from_at: 5, ...untold },
    { ...organization, kind: 'month', amount_micro: 33, set_at: 5, from_at: 3, told_day: 20_454, told_percent: 80 },
  ]);
  const times = { limit_micro: 22, from_at: 1, until_at: 6, spent_micro: 9 };
  expect(earlier).toEqual([{ id: 4, organization_id: 'o', limited_id: 'k', kind: 'day', ...times }]);
  store.close();
});

it('counts for the key that has deployed it what runs in a store that is older than runs of other keys', () => {
  new Store(file, new ManualClock(), { steps: migrations.slice(0, 44) }).close();
  const database = new BetterSqlite3(file);
  database.exec(`INSERT INTO users (id, email, name, password_hash, created_at) VALUES ('u', '', '', '', 0);
    INSERT INTO organizations (id, name, created_at) VALUES ('o', '', 0);
    INSERT INTO api_keys (id, organization_id, creator_id, name, kind, prefix, secret_hash, created_at)
    VALUES ('k', 'o', 'u', '', 'team', '', '', 0)`);
  database.pragma('foreign_keys = OFF');
  const instance = (
    id: string,
    key: string,
  ) => `INSERT INTO instances (id, organization_id, machine_id, offer_id, template_id, status,
    num_gpus, disk_gb, price_per_hour_micro, storage_price_per_gb_hour_micro, template_snapshot, ssh_user, deployed_by, created_at,
    status_changed_at, progress_at, api_key_id) VALUES ('${id}', 'o', 'm', 'f', 't', 'running', 1, 1, 1, 1, '', '', '', 7, 8, 8, ${key});
    INSERT INTO meter_intervals (instance_id, organization_id, machine_id, meter, opened_at, closed_at, attested_to, settled_to)
    VALUES ('${id}', 'o', 'm', 'gpu', 1, 2, 2, 2), ('${id}', 'o', 'm', 'gpu', 3, NULL, 4, 4);
    INSERT INTO instance_schedules VALUES ('${id}', 'UTC', '[]', 1, 1, NULL)`;
  database.exec(`INSERT INTO machines (id, name, region, public_address, arch, cpu_model, cpu_cores, memory_mb, disk_gb, disk_quota,
    vm_capable, gpu_release_supported, enrolled_at) VALUES ('m', '', '', '', '', '', 1, 1, 1, '', 0, 0, 0);
    INSERT INTO offers (id, machine_id, num_gpus, price_per_hour_micro, storage_price_per_gb_hour_micro, created_at)
    VALUES ('f', 'm', 1, 1, 1, 0);
    INSERT INTO templates (id, hash_id, visibility, name, description, kind, mode, image, arch, ssh_user, env_encrypted, command, ports,
    uses_access_token, coming_soon, recommended, created_at) VALUES ('t', '', 'system', '', '', 'container', '', '', '', '', x'', '', '',
    0, 0, 0, 0);
    ${instance('i', "'k'")}; ${instance('j', 'NULL')};
    INSERT INTO charge_days VALUES ('o', 'api_key', 'k', 9, 'i', 5, 6), ('o', 'api_key', '', 9, 'j', 1, 1), ('o', 'label', '', 9, 'i', 5, 6)`);
  database.close();
  const store = new Store(file, new ManualClock());
  const [instances, intervals, schedules, days] = store.transact((tx) => [
    tx.all(query.selectFrom('instances').select(['id', 'run_key_id']).orderBy('id')),
    tx.all(query.selectFrom('meter_intervals').select(['instance_id', 'capped_key_id']).where('closed_at', 'is', null)),
    tx.all(query.selectFrom('instance_schedules').select(['instance_id', 'key_id']).orderBy('instance_id')),
    tx.all(query.selectFrom('key_days').selectAll()),
  ]);
  expect(instances.map(({ run_key_id }) => run_key_id)).toEqual(['k', null]);
  expect(intervals.map(({ capped_key_id }) => capped_key_id)).toEqual(['k', null]);
  expect(schedules.map(({ key_id }) => key_id)).toEqual(['k', null]);
  expect(days).toEqual([{ api_key_id: 'k', day: 9, micro: 11 }]);
  store.close();
});

it('sums up what each day has cost in a ledger that is older than these sums', () => {
  new Store(file, new ManualClock(), { steps: migrations.slice(0, 5) }).close();
  const database = new BetterSqlite3(file);
  database.pragma('foreign_keys = OFF');
  const HOUR_MS = 3_600_000;
  const charge = (id: number, instance: string, meter: string, hour: number, micro: number) =>
    database.exec(`INSERT INTO transactions (id, organization_id, kind, amount_micro, instance_id, meter, hour, created_at)
      VALUES ('${id}', 'o', 'charge', ${-micro}, '${instance}', '${meter}', ${hour * HOUR_MS}, 0)`);
  database.exec(`INSERT INTO machines (id, name, region, public_address, arch, cpu_model, cpu_cores, memory_mb, disk_gb, disk_quota,
    vm_capable, gpu_release_supported, enrolled_at) VALUES ('m', '', '', '', '', '', 1, 1, 1, '', 0, 0, 0);
    INSERT INTO organizations (id, name, created_at) VALUES ('o', '', 0);
    INSERT INTO instances (id, organization_id, machine_id, offer_id, template_id, status, num_gpus, disk_gb, price_per_hour_micro,
    storage_price_per_gb_hour_micro, template_snapshot, ssh_user, deployed_by, created_at, status_changed_at, progress_at)
    VALUES ('i', 'o', 'm', '', '', 'stopped', 1, 1, 1, 1, '', '', '', 0, 0, 0)`);
  charge(1, 'i', 'gpu', 24, 10);
  charge(2, 'i', 'gpu', 47, 5);
  charge(3, 'i', 'disk', 47, 3);
  charge(4, 'i', 'disk', 48, 4);
  database.close();
  const store = new Store(file, new ManualClock());
  const days = [
    { day: 1, gpu_micro: 15, disk_micro: 3 },
    { day: 2, gpu_micro: 0, disk_micro: 4 },
  ];
  const sums = ['day', 'gpu_micro', 'disk_micro'] as const;
  store.transact((tx) => {
    expect(tx.all(query.selectFrom('organization_days').select(sums).orderBy('day'))).toEqual(days);
    expect(tx.all(query.selectFrom('machine_days').select(sums).orderBy('day'))).toEqual(days);
    for (const group of CHARGE_GROUPS) {
      const rows = query.selectFrom('charge_days').select(sums).where('grouped_by', '=', group).orderBy('day');
      expect(tx.all(rows), group).toEqual(days);
    }
  });
  store.close();
});

it('keeps the long templates of instances that were destroyed before without command and environment', () => {
  new Store(file, new ManualClock(), { steps: migrations.slice(0, 53) }).close();
  const database = new BetterSqlite3(file);
  database.pragma('foreign_keys = OFF');
  const long = JSON.stringify({ name: 'n', env: [{ key: 'A' }], command: ['x'.repeat(9_000)] });
  const short = JSON.stringify({ name: 'n', env: [{ key: 'A' }], command: ['x'] });
  const insert =
    database.prepare(`INSERT INTO instances (id, organization_id, machine_id, offer_id, template_id, status, num_gpus,
    disk_gb, price_per_hour_micro, storage_price_per_gb_hour_micro, template_snapshot, ssh_user, deployed_by, created_at,
    status_changed_at, progress_at) VALUES (?, 'o', 'm', '', '', ?, 1, 1, 1, 1, ?, '', '', 0, 0, 0)`);
  insert.run('live', 'stopped', long);
  insert.run('long', 'destroyed', long);
  insert.run('short', 'destroyed', short);
  database.close();
  const store = new Store(file, new ManualClock());
  const rows = store.transact((tx) => tx.all(query.selectFrom('instances').select(['id', 'template_snapshot'])));
  store.close();
  expect(Object.fromEntries(rows.map((row) => [row.id, row.template_snapshot]))).toEqual({
    live: long,
    long: JSON.stringify({ name: 'n', env: [], command: [] }),
    short,
  });
});

it('refuses a file of a newer release, and one that is no database, without harm', () => {
  new Store(file, new ManualClock()).close();
  const database = new BetterSqlite3(file);
  database.pragma('user_version = 999');
  database.close();
  expect(() => new Store(file, new ManualClock())).toThrow(/written by a newer release.*: install that release again$/);
  expect(() => new Store('/nowhere/gpurent.db', new ManualClock())).toThrow(/cannot write/);
});

it('seals values for one purpose, with one key', () => {
  const encryption = new Encryption(Buffer.alloc(32, 1));
  const sealed = encryption.encrypt('template.env', { password: 'secret' });
  expect(sealed.toString('latin1')).not.toContain('secret');
  expect(encryption.decrypt('template.env', sealed)).toEqual({ password: 'secret' });
  expect(() => encryption.decrypt('template.registry', sealed)).toThrow();
  expect(() => new Encryption(Buffer.alloc(32, 2)).decrypt('template.env', sealed)).toThrow();
  sealed[40] = (sealed[40] ?? 0) ^ 1;
  expect(() => encryption.decrypt('template.env', sealed)).toThrow();
});

it('a database is not opened with another key, nor a new key made beside it', () => {
  const store = new Store(file, new ManualClock());
  checkKey(store, new Encryption(Buffer.alloc(32, 1)));
  checkKey(store, new Encryption(Buffer.alloc(32, 1)));
  expect(() => checkKey(store, new Encryption(Buffer.alloc(32, 2)))).toThrow(/not the one that this database/);
  store.close();
  expect(() => parseConfig({ GPURENT_DATABASE: file })).toThrow(/gpurent\.db\.key is missing/);
  const fresh = parseConfig({ GPURENT_DATABASE: join(folder, 'new.db') });
  expect(parseConfig({ GPURENT_DATABASE: join(folder, 'new.db') }).secretKey).toEqual(fresh.secretKey);
});

it.each([
  [{}, { http: false, grpc: false }],
  [{ GPURENT_HTTP_ADDRESS: '0.0.0.0:8080' }, { http: true, grpc: false }],
  [
    { GPURENT_GRPC_ADDRESS: '[::]:8090', GPURENT_HTTP_TLS: 'on' },
    { http: true, grpc: true },
  ],
  [
    { GPURENT_GRPC_ADDRESS: '10.0.0.1:8090', GPURENT_GRPC_TLS: 'off' },
    { http: false, grpc: false },
  ],
])('plain text stays on this machine, unless it is asked for by name: %j', (environment, expected) => {
  expect(parseConfig({ GPURENT_DATABASE: join(folder, 'tls.db'), ...environment }).tls).toMatchObject(expected);
});

it.each([
  [{ GPURENT_HTTP_TLS: 'yes' }, /GPURENT_HTTP_TLS is "yes"; give auto/],
  [{ GPURENT_TLS_KEY_FILE: 'key.pem' }, /give both/],
  [{ GPURENT_GRPC_ADDRESS: 'nowhere' }, /HOST:PORT/],
  [{ GPURENT_DATABSE: 'x' }, /GPURENT_DATABSE is not a setting/],
  [
    { GPURENT_NEW: 'x', GPURENT_NEWER: 'y' },
    /^GPURENT_NEW, GPURENT_NEWER are not settings of the control plane; remove/,
  ],
  [{ GPURENT_LOG_LEVEL: 'loud' }, /GPURENT_LOG_LEVEL/],
])('a wrong setting %j is named', (environment, saying) => {
  expect(() => parseConfig({ GPURENT_DATABASE: file, ...environment })).toThrow(saying);
});

describe('the write-ahead log', () => {
  let store: Store;
  beforeEach(() => {
    store = new Store(file, new ManualClock());
  });
  afterEach(() => store.close());

  const logSize = () => statSync(`${file}-wal`).size;
  const write = (megabytes: number) => {
    for (let written = 0; written < megabytes; written++)
      store.transact((tx) => tx.run(query.updateTable('meta').set({ value: String(written % 10).repeat(1_048_576) })));
  };
  const slowReader = () => {
    const reader = new BetterSqlite3(file, { readonly: true });
    const held = reader.prepare('SELECT * FROM meta').iterate();
    held.next();
    return () => {
      held.return?.();
      reader.close();
    };
  };

  it('gives back what it has grown to behind a slow reader', () => {
    const end = slowReader();
    write(60);
    expect(logSize()).toBeGreaterThan(50 * 1024 * 1024);
    end();
    write(2);
    expect(logSize()).toBeLessThanOrEqual(20 * 1024 * 1024);
  });

  it('gives back everything once nothing is written any more', () => {
    write(3);
    expect(store.truncateIdleLog()).toBe(false);
    expect(store.truncateIdleLog()).toBe(true);
    expect(logSize()).toBe(0);
    expect(store.truncateIdleLog()).toBe(false);
  });

  it('leaves a log that Litestream reads as it is', () => {
    store.close();
    store = new Store(file, new ManualClock(), { litestream: true });
    write(6);
    expect(logSize()).toBeGreaterThan(5 * 1024 * 1024);
    expect([store.truncateIdleLog(), store.truncateIdleLog()]).toEqual([false, false]);
  });

  it('waits for nobody who reads', () => {
    write(3);
    const end = slowReader();
    write(1);
    store.truncateIdleLog();
    const before = Date.now();
    expect(store.truncateIdleLog()).toBe(false);
    expect(Date.now() - before).toBeLessThan(4_500);
    end();
    expect(store.truncateIdleLog()).toBe(true);
  });
});
