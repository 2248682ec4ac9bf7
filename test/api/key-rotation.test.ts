import BetterSqlite3 from 'better-sqlite3';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createControlPlane, forgetSecrets, rotateKey, type ControlPlane } from '../../control-plane/app.js';
import { parseConfig } from '../../control-plane/config.js';
import { prepareNextKey } from '../../control-plane/secret-key.js';
import { ENCRYPTED_COLUMNS, reencrypt } from '../../control-plane/services/secrets/key-rotation.js';
import { Encryption } from '../../control-plane/services/secrets/encryption.js';
import { backUp, restore } from '../../control-plane/store/backup.js';
import { Store } from '../../control-plane/store/store.js';
import { SetupError } from '../../shared/coded-error.js';
import { systemClock } from '../../shared/clock.js';
import { silentLogger } from '../../shared/logger.js';
import { ApiClient, type InstanceBody } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { CHEAP_PASSWORDS } from '../harness/control-plane.js';
import { FakeAgent } from '../harness/fake-agent.js';
import { memoryFolder } from '../harness/memory-folder.js';

const VALUE = 'a value that only its workload may see';

let folder: string;
let file: string;
let running: ControlPlane | undefined;
let agent: FakeAgent | undefined;
let operator: ApiClient;
let grpc = '';

const config = () =>
  parseConfig({ GPURENT_DATABASE: file, GPURENT_HTTP_ADDRESS: '127.0.0.1:0', GPURENT_GRPC_ADDRESS: '127.0.0.1:0' });
const keyFile = () => `${file}.key`;

beforeEach(() => {
  folder = memoryFolder('gpurent-test-');
  file = join(folder, 'gpurent.db');
});
afterEach(async () => {
  agent?.close();
  await running?.stop();
  running = undefined;
  rmSync(folder, { recursive: true, force: true });
});

async function boot(): Promise<void> {
  running = createControlPlane(config(), silentLogger, { passwordCost: CHEAP_PASSWORDS });
  const addresses = await running.start();
  grpc = addresses.grpc;
  const credentials = { email: 'op@example.com', password: 'operator password' };
  await running.createOperator(credentials.email, credentials.password).catch(() => undefined);
  const api = new ApiClient(`http://${addresses.http}`);
  operator = api.as((await api.post<{ token: string }>('/v1/auth/sign-in', credentials)).token);
}

async function stop(): Promise<void> {
  agent?.disconnect();
  await running?.stop();
  running = undefined;
}

/** A template with a secret, and an instance of it on a host. */
async function rent(): Promise<{ id: string; renter: ApiClient }> {
  const { token } = await operator.post<{ token: string }>('/v1/operator/enrollment-tokens', {});
  agent = await FakeAgent.enroll(grpc, token, { gpus: 1 });
  await agent.connect();
  const prices = { price_per_hour_micro: 1_000, storage_price_per_gb_hour_micro: 1 };
  const { id: offerId } = await operator.post<{ id: string }>('/v1/operator/offers', {
    machine_id: agent.hostId,
    num_gpus: 1,
    ...prices,
  });
  const { id: templateId } = await operator.post<{ id: string }>('/v1/operator/templates', {
    name: 'Secret',
    image: 'registry.example.com/secret:1',
    ports: [
      {
        port: 8e3,
        guard: 'proxy',
      },
    ],
    env: [
      {
        key: 'PRIVATE',
        value: VALUE,
        secret: true,
      },
    ],
    registry: {
      username: 'user',
      password: VALUE,
    },
  });
  const account = { email: 'renter@example.com', password: 'renter password', name: 'Renter' };
  const signedUp = await operator.post<{ token: string; organization: { id: string } }>('/v1/auth/sign-up', account);
  const renter = operator.as(signedUp.token);
  const credit = { amount_micro: 1_000_000, reason: 'test' };
  await operator.post(`/v1/operator/organizations/${signedUp.organization.id}/credits`, credit);
  const { id } = await renter.post<InstanceBody>('/v1/instances', {
    offer_id: offerId,
    template_id: templateId,
    disk_gb: 10,
  });
  await eventually(
    'the workload',
    async () => (await renter.get<InstanceBody>(`/v1/instances/${id}`)).status === 'running',
  );
  return { id, renter };
}

it('every sealed column of the schema is sealed anew', () => {
  new Store(file, systemClock).close();
  const database = new BetterSqlite3(file, { readonly: true });
  const columns = database
    .prepare<[], { table: string; column: string }>(
      "SELECT m.name AS 'table', c.name AS 'column' FROM sqlite_master m, pragma_table_info(m.name) c WHERE c.name LIKE '%\\_encrypted' ESCAPE '\\'",
    )
    .all();
  database.close();
  const named = ENCRYPTED_COLUMNS.map(({ table, column }) => `${table}.${column}`).sort();
  expect(columns.map(({ table, column }) => `${table}.${column}`).sort()).toEqual(named);
});

it('a new key opens everything, and the one before opens nothing but older backups', async () => {
  await boot();
  const { id } = await rent();
  await running?.platform.authority.certificate();
  const backup = join(folder, 'backup.db');
  backUp(file, backup);
  await expect(async () => rotateKey(config())).rejects.toThrow(/another control plane is running .*stop it first/);
  await stop();
  const before = readFileSync(keyFile(), 'utf8');
  const { count, kept } = rotateKey(config());
  // The template's environment and password, the workload, its access token, the authority's key, the check.
  expect(count).toBe(6);
  expect(readFileSync(kept, 'utf8')).toBe(before);
  expect(readFileSync(keyFile(), 'utf8')).not.toBe(before);

  await boot();
  const reader = new Store(backup, systemClock);
  reader.close();
  await running?.platform.authority.certificate();
  const database = new BetterSqlite3(file, { readonly: true });
  const { workload_encrypted: sealed } = database
    .prepare('SELECT workload_encrypted FROM instances WHERE id = ?')
    .get(id) as { workload_encrypted: Buffer };
  database.close();
  const opened = JSON.stringify(running?.platform.encryption.decrypt('instance.workload', sealed));
  expect(opened).toContain(VALUE);
  expect(() => new Encryption(Buffer.from(before.trim(), 'hex')).decrypt('instance.workload', sealed)).toThrow();

  await stop();
  restore(backup, file, Date.now());
  expect(() => createControlPlane(config(), silentLogger)).toThrow(/not the one that this database was encrypted with/);
});

it('a new key that cannot be written is refused, before anything is sealed anew', async () => {
  await boot();
  await stop();
  const before = readFileSync(keyFile(), 'utf8');
  const settings = { ...config(), secretKeyFile: join(file, 'key') };
  expect(() => rotateKey(settings)).toThrow(SetupError);
  expect(() => rotateKey(settings)).toThrow(`${file} is not a folder`);
  expect(readFileSync(keyFile(), 'utf8')).toBe(before);
  await boot();
});

it('an exchange that was cut short after its commit is finished at the next start, before it: not begun', async () => {
  await boot();
  await stop();
  const before = readFileSync(keyFile(), 'utf8');
  prepareNextKey(keyFile());
  await boot();
  await stop();
  expect(readFileSync(keyFile(), 'utf8')).toBe(before);
  writeFileSync(`${keyFile()}.next`, before.slice(0, 20));
  await boot();
  await stop();
  expect(readFileSync(keyFile(), 'utf8')).toBe(before);

  const store = new Store(file, systemClock);
  reencrypt(store, new Encryption(config().secretKey), new Encryption(prepareNextKey(keyFile())));
  store.close();
  await boot();
  expect(readFileSync(keyFile(), 'utf8')).not.toBe(before);
  expect(existsSync(`${keyFile()}.next`)).toBe(false);
  expect(readdirSync(folder).filter((name) => name.startsWith('gpurent.db.key.before-'))).toHaveLength(1);
});

it('a key that is lost for good is the end of what it sealed, and of nothing else', async () => {
  await boot();
  const { id, renter: first } = await rent();
  let renter = first;
  const instance = () => renter.get<InstanceBody & { access_token: string | null }>(`/v1/instances/${id}`);
  const stands = (status: string) => eventually(status, async () => (await instance()).status === status);
  expect((await instance()).access_token).toMatch(/^[0-9a-f]{48}$/);
  await running?.platform.authority.certificate();
  const hooks = { url: 'https://hooks.example', types: ['webhook.disabled'] };
  const { endpoint } = await renter.post<{ endpoint: { id: string } }>('/v1/webhook-endpoints', hooks);
  expect(() => forgetSecrets(config())).toThrow(/another control plane is running/);
  await stop();
  expect(() => forgetSecrets(config())).toThrow(/decrypts this database: nothing needs to be forgotten/);
  const lost = readFileSync(keyFile(), 'utf8');
  rmSync(keyFile());
  expect(() => config()).toThrow(/is missing: .*"The key is lost" in docs/);
  writeFileSync(keyFile(), randomBytes(32).toString('hex'));
  expect(() => createControlPlane(config(), silentLogger)).toThrow(/is lost for good, see "The key is lost" in docs/);

  const { kept, ...forgotten } = forgetSecrets(config());
  expect(forgotten).toEqual({ templates: 1, instances: 1 });
  // Whatever is sealed is of the new key.
  const [store, encryption] = [new Store(file, systemClock), new Encryption(config().secretKey)];
  expect(reencrypt(store, encryption, encryption)).toBeGreaterThan(0);
  store.close();
  await boot();
  renter = operator.as(first.token);
  const off = { enabled: false, disabled_reason: 'secret_lost' };
  expect(await renter.get(`/v1/webhook-endpoints/${endpoint.id}`)).toMatchObject(off);
  const state = agent?.state;
  agent?.close();
  agent = state && FakeAgent.resume(grpc, state);
  await agent?.connect();
  await eventually('the host', async () => {
    const machine = await operator.get<{ connected: boolean }>(`/v1/operator/machines/${agent?.hostId}`);
    return machine.connected;
  });
  expect(await instance()).toMatchObject({ status: 'running', access_token: null });
  const events = await renter.get<{ items: { kind: string }[] }>(`/v1/instances/${id}/events`);
  expect(events.items.map(({ kind }) => kind)).toContain('secrets_lost');
  await renter.post(`/v1/instances/${id}/stop`);
  await stands('stopped');
  await renter.post(`/v1/instances/${id}/start`);
  await stands('running');
  await renter.delete(`/v1/instances/${id}`);
  await stands('destroyed');
  await stop();

  // Where the key is found after all, the store as it was opens with it.
  restore(kept, file, Date.now());
  writeFileSync(keyFile(), lost);
  await boot();
});
