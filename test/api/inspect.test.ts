import BetterSqlite3 from 'better-sqlite3';
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recordNote } from '../../control-plane/services/events/timeline.js';
import { INSPECTED, inspect } from '../../control-plane/services/system/inspect.js';
import { inspectionJson, inspectionText } from '../../control-plane/services/system/inspection-text.js';
import { query } from '../../control-plane/store/sql.js';
import { SetupError } from '../../shared/coded-error.js';
import { eventually } from '../../scripts/eventually.js';
import type { InstanceBody } from '../harness/api-client.js';
import { World } from '../contract/world.js';

const PROGRAM = fileURLToPath(new URL('../../dist/bundle/control-plane.js', import.meta.url));
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

let world: World;
let database: string;
let ids: Record<(typeof INSPECTED)[number], string>;
let secrets: string[];

beforeAll(async () => {
  world = await World.make();
  const { test, admin } = world;
  database = test.databaseFile;
  const template_id = await test.template({ ports: [{ port: 8000, guard: 'proxy' }] });
  const { agent, body } = await world.host({ gpus: 2 });
  const { secret } = await world.key('team', admin, 'nightly');
  const env_overrides = [{ key: 'PASSWORD', value: 'a value that is secret', secret: true }];
  const { id, access_token } = await world.running({ ...body, template_id, env_overrides });
  await admin.api.request('PATCH', `/v1/instances/${id}`, {
    stop_at: '2030-01-01T00:00:00.000Z',
    max_charge_micro: 90_000_000,
  });
  test.advance(1_000);
  await admin.api.request('PATCH', `/v1/instances/${id}`, { max_charge_micro: 95_000_000 });
  const entries = [{ action: 'stop', days: ['monday'], at: '23:59' }];
  await admin.api.request('PUT', `/v1/instances/${id}/schedule`, { time_zone: 'UTC', entries });
  const caps = { burn_per_hour_micro: null, day_micro: 80_000_000, month_micro: null };
  await admin.api.request('PUT', '/v1/orgs/current/spend-caps', caps);
  agent.automatic = false;
  await admin.api.post(`/v1/instances/${id}/stop`);
  const stop = await eventually('the stop', () => agent.held.find(({ instanceId }) => instanceId === id));
  ids = { instance: id, machine: agent.hostId, organization: admin.organizationId, command: stop.commandId };
  secrets = [secret, String(access_token), 'a value that is secret', ...storedSecrets()];
});
afterAll(() => world.stop());

/** Whatever stands in a column of hashes or of what is encrypted. */
function storedSecrets(): string[] {
  const file = new BetterSqlite3(database, { readonly: true });
  const tables = file.prepare<[], { name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  const found = tables.flatMap(({ name }) =>
    file.prepare<[], Record<string, unknown>>(`SELECT * FROM ${name}`).all().flatMap(Object.entries),
  );
  file.close();
  return found.flatMap(([column, value]) => {
    if (!/hash|encrypted|^value$/.test(column) || value === null || String(value).length < 16) return [];
    return Buffer.isBuffer(value) ? [value.toString('hex'), value.toString('base64')] : [String(value)];
  });
}

function run(...args: string[]) {
  const env = { ...process.env, GPURENT_DATABASE: database };
  return spawnSync(process.execPath, [PROGRAM, 'inspect', ...args], { env, encoding: 'utf8' });
}

type Section = Record<string, unknown>;
const read = (kind: keyof typeof ids, id = ids[kind]) => inspect(database, kind, id) as Record<string, unknown>;

describe('beside a running control plane', () => {
  it('an instance is shown with its machine, GPUs, commands, events, meters and balance', () => {
    const { instance, machine, organization, gpu_claims, open_command, commands, events, meter_intervals } =
      read('instance');
    expect(instance).toMatchObject({ id: ids.instance, status: 'stopping', num_gpus: 1, error_code: null });
    expect((instance as Section)['created_at']).toMatch(TIMESTAMP);
    expect(machine).toMatchObject({ id: ids.machine, lost_at: null });
    expect(organization).toMatchObject({ id: ids.organization, balance_micro: 100_000_000 });
    expect(gpu_claims).toMatchObject([{ instance_id: ids.instance, healthy: 1 }]);
    expect(open_command).toMatchObject({ id: ids.command, kind: 'stop', state: 'open' });
    expect((commands as Section[]).map(({ kind }) => kind)).toEqual(['stop', 'provision']);
    const [latest, ...others] = (events as Section[]).map(({ kind }) => kind);
    expect(latest).toBe('stop_requested');
    expect(others.at(-1)).toBe('created');
    expect(meter_intervals).toMatchObject([{ meter: 'gpu', closed_at: expect.stringMatching(TIMESTAMP) as string }]);
  });

  it('an instance is shown with its limits, schedule and caps', () => {
    const { instance, schedule, spend_caps } = read('instance');
    expect(instance).toMatchObject({
      stop_at: '2030-01-01T00:00:00.000Z',
      max_charge_micro: 95_000_000,
      on_limit: null,
    });
    expect(schedule).toMatchObject({ time_zone: 'UTC', next_at: expect.stringMatching(TIMESTAMP) as string });
    const cap = {
      api_key_id: null,
      kind: 'day',
      amount_micro: 80_000_000,
      from_at: expect.stringMatching(TIMESTAMP) as string,
    };
    expect(spend_caps).toMatchObject([cap]);
    expect(read('organization')['spend_caps']).toEqual(spend_caps);
  });

  it('a machine is shown with its GPUs, offers, instances and what it is still to do', () => {
    const { machine, gpus, gpu_claims, offers, instances, open_commands, quarantine, credentials } = read('machine');
    expect(machine).toMatchObject({ id: ids.machine, last_seen_at: expect.stringMatching(TIMESTAMP) as string });
    expect(gpus).toHaveLength(2);
    expect(gpu_claims).toMatchObject([{ instance_id: ids.instance }]);
    expect(offers).toMatchObject([{ num_gpus: 1 }]);
    expect(instances).toMatchObject([{ id: ids.instance, status: 'stopping' }]);
    expect(open_commands).toMatchObject([{ id: ids.command }]);
    expect(quarantine).toEqual([]);
    expect(credentials).toMatchObject([{ generation: 1, revoked_at: null }]);
  });

  it('a command is shown with its instance and machine', () => {
    expect(read('command')).toMatchObject({
      command: { id: ids.command, kind: 'stop', state: 'open', instance_id: ids.instance, finished_at: null },
      instance: { id: ids.instance, status: 'stopping' },
      machine: { id: ids.machine },
    });
  });

  it('an organization is shown with its members, instances, keys and ledger', () => {
    const { organization, members, instances, api_keys, disputes, transactions } = read('organization');
    expect(organization).toMatchObject({ id: ids.organization, payments_frozen_at: null });
    expect((members as Section[]).map(({ role }) => role)).toEqual(['admin', 'member']);
    expect(instances).toMatchObject([{ id: ids.instance }]);
    expect(api_keys).toMatchObject([{ name: 'nightly', kind: 'team', revoked_at: null }]);
    expect(disputes).toEqual([]);
    expect(transactions).toMatchObject([{ kind: 'credit', amount_micro: 100_000_000 }]);
  });

  it.each(INSPECTED)('no secret is shown of a %s', (kind) => {
    expect(secrets.length).toBeGreaterThan(10);
    const shown = inspectionJson(inspect(database, kind, ids[kind]));
    expect(secrets.filter((secret) => shown.includes(secret))).toEqual([]);
    expect(shown).not.toMatch(/hash|encrypted|snapshot|last_lines|token/);
  });

  it('what a workload has printed is not shown', () => {
    const { store } = world.test.core.platform;
    const printed = 'the password is 1234';
    const failed = { error_code: 'workload_failed', error_message: printed };
    store.transact((tx) => {
      recordNote(tx, ids.instance, 'workload_failed', printed);
      tx.run(query.updateTable('instances').set(failed).where('id', '=', ids.instance));
    });
    const { instance, events } = read('instance');
    expect((instance as Section)['error_message']).toMatch(/not shown/);
    expect(events).toMatchObject([
      { kind: 'workload_failed', message: expect.stringMatching(/not shown/) as string },
      {},
      {},
      {},
    ]);
    const cleared = query.updateTable('instances').set({ error_code: null, error_message: null });
    store.transact((tx) => tx.run(cleared.where('id', '=', ids.instance)));
  });

  it('lists are cut, and each begins with the newest', () => {
    const { store } = world.test.core.platform;
    store.transact((tx) => {
      for (let count = 0; count < 60; count++) recordNote(tx, ids.instance, 'note', `${count}`);
    });
    const shown = read('instance')['events'] as Section[];
    expect(shown.map(({ message }) => message)).toEqual(Array.from({ length: 20 }, (_, index) => `${59 - index}`));
  });

  it('changes nothing, not even a file beside the database', () => {
    const [before, files] = [world.test.dump(), readdirSync(dirname(database)).sort()];
    for (const kind of INSPECTED) read(kind);
    expect(world.test.dump()).toEqual(before);
    expect(readdirSync(dirname(database)).sort()).toEqual(files);
  });

  it('the command prints text, or JSON where it is asked for', async () => {
    const text = run('instance', ids.instance);
    expect(text).toMatchObject({ status: 0, stderr: '' });
    expect(text.stdout).toMatch(/^instance\n {2}id +[0-9a-f-]{36}\n {2}status +stopping\n/);
    expect(text.stdout).toMatch(/\ncommands: 2\n {2}id=\S+ kind=stop state=open /);
    expect(text.stdout).toBe(inspectionText(inspect(database, 'instance', ids.instance)));
    const json = run('organization', ids.organization, '--json');
    expect(JSON.parse(json.stdout)).toEqual(inspect(database, 'organization', ids.organization));
    expect((await world.admin.api.get<InstanceBody>(`/v1/instances/${ids.instance}`)).status).toBe('stopping');
  });
});

describe('what cannot be shown is refused in one line', () => {
  it.each([
    ['an unknown id', () => ['instance', randomUUID()], /has no instance "[0-9a-f-]{36}"$/],
    [
      'an id of another kind',
      () => ['instance', ids.machine],
      /has no instance "[0-9a-f-]{36}": this is the id of a machine$/,
    ],
    ['an unknown kind', () => ['user', ids.machine], /"user" cannot be inspected; use one of instance, machine, /],
  ])('%s', (_, args, message) => {
    const { status, stdout, stderr } = run(...args());
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr.split('\n')).toHaveLength(2);
    expect(stderr.trim()).toMatch(message);
  });

  it('no database, and then none is made', () => {
    const folder = mkdtempSync(join(tmpdir(), 'gpurent-inspect-'));
    const env = { ...process.env, GPURENT_DATABASE: join(folder, 'none.db') };
    const { status, stderr } = spawnSync(process.execPath, [PROGRAM, 'inspect', 'machine', 'x'], {
      env,
      encoding: 'utf8',
    });
    expect(status).toBe(1);
    expect(stderr).toMatch(/^gpurent-control-plane: there is no database .*none\.db; set GPURENT_DATABASE\n$/);
    expect(readdirSync(folder)).toEqual([]);
    rmSync(folder, { recursive: true });
  });

  it.each([
    [1, /older release .*migrate/],
    [999, /newer release/],
  ])('a database of schema %i', (version, message) => {
    const folder = mkdtempSync(join(tmpdir(), 'gpurent-inspect-'));
    const copy = join(folder, 'copy.db');
    copyFileSync(database, copy);
    const file = new BetterSqlite3(copy);
    file.pragma(`user_version = ${version}`);
    file.close();
    expect(() => inspect(copy, 'machine', ids.machine)).toThrow(SetupError);
    expect(() => inspect(copy, 'machine', ids.machine)).toThrow(message);
    rmSync(folder, { recursive: true });
  });

  it('what is no database', () => {
    expect(() => inspect(PROGRAM, 'machine', ids.machine)).toThrow(SetupError);
  });
});

it('nothing that others chose moves the cursor of a terminal', () => {
  const inspection = {
    machine: { name: 'a\u001b[2Jb\u202ec\nd\u0085' },
    events: [{ message: 'x\r y' }],
    command: null,
  };
  expect(inspectionText(inspection)).toBe(
    `machine\n  ${'name'.padEnd(32)} a\\u001b[2Jb\\u202ec\\nd\\u0085\n\nevents: 1\n  message="x\\u000d y"\n\ncommand: none\n`,
  );
  const json = inspectionJson(inspection);
  expect(json).not.toMatch(/[\u202e\u0085]/);
  expect(JSON.parse(json)).toEqual(inspection);
});
