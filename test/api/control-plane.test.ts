import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOUR_MS } from '../../shared/time.js';
import { describeSettings } from '../../control-plane/domain/setting.js';
import { acceptSettings, backUp, restore } from '../../control-plane/store/backup.js';
import { isDrill } from '../../control-plane/store/meta.js';
import { migrations } from '../../control-plane/store/migrations/index.js';
import { Store } from '../../control-plane/store/store.js';
import { advanceUntil } from '../harness/advance-until.js';
import { VERSION } from '../../shared/version.js';
import { TestControlPlane } from '../harness/control-plane.js';
import { memoryFolder } from '../harness/memory-folder.js';

interface Backups {
  last_at: string | null;
  usable: boolean;
  overdue: boolean;
}
interface Shown {
  backups: Backups | null;
  [field: string]: unknown;
}

const folder = memoryFolder('gpurent-backups-');
let test: TestControlPlane;
/** How often a webhook has looked for its receiver. */
let resolved = 0;
beforeAll(async () => {
  const resolve = async () => {
    resolved += 1;
    return [];
  };
  test = await TestControlPlane.start({ webhooks: { resolve } });
});
afterAll(async () => {
  await test.stop();
  rmSync(folder, { recursive: true, force: true });
});

const read = () => test.operator.get<Shown>('/v1/operator/control-plane');
const iso = (at: number) => new Date(at).toISOString();

it('says its version, that of its schema, and since when it runs', async () => {
  const startedAt = test.clock.now();
  test.clock.advance(5_000);
  expect(await read()).toEqual({
    version: VERSION,
    schema_version: migrations.length,
    started_at: iso(startedAt),
    restored_at: null,
    backups: null,
  });
  test.pretendRestored();
  expect(await read()).toMatchObject({ restored_at: iso(test.clock.now()) });
});

it('says how the backups stand, and calls them overdue when the alert does', async () => {
  const copies = join(folder, 'copies');
  await test.restart({ backups: { folder: copies, everyMs: 24 * HOUR_MS, keep: 3 } });
  const backups = async () => (await read()).backups;
  const made = await advanceUntil('a copy', { clock: test.clock, stepMs: 1 }, async () => {
    const state = await backups();
    return state?.last_at !== null && state;
  });
  expect(made).toMatchObject({ folder: copies, every_hours: 24, keep: 3, usable: true, overdue: false });
  rmSync(copies, { recursive: true });
  const passing = { clock: test.clock, stepMs: 60_000 };
  await advanceUntil('the missing folder to be noted', passing, async () => (await backups())?.usable === false);
  expect(await backups()).toMatchObject({ last_at: null, overdue: true });
  const { platform } = test.core;
  const overdueAfter = async (overdueMs: number) => {
    const state = { folder: copies, everyMs: 24 * HOUR_MS, keep: 3, newestAt: 0, isUsable: true, overdueMs };
    platform.backups = { state: () => state };
    return (await backups())?.overdue;
  };
  // packaging/alerts.yml: GpurentBackupOverdue.
  expect([await overdueAfter(HOUR_MS), await overdueAfter(HOUR_MS + 1)]).toEqual([false, true]);
});

describe('the settings', () => {
  it('are listed by name, in pages, too, without what is hidden', async () => {
    const environment = { GPURENT_SIGN_UP: 'invitation', GPURENT_SMTP_PASSWORD_FILE: '/etc/hidden' };
    const settings = describeSettings(Object.keys(environment), environment, { GPURENT_SIGN_UP: 'open' });
    await test.restart({ settings });
    const [signUp, password] = settings;
    expect(await test.operator.get('/v1/operator/settings')).toEqual({ items: [signUp, password] });
    expect(signUp).toMatchObject({ value: 'invitation', is_default: false });
    expect(password).toMatchObject({ value: null, is_set: true, is_shown: false });
    const first = await test.operator.get<{ next_cursor: string }>('/v1/operator/settings?limit=1');
    expect(first).toMatchObject({ items: [signUp] });
    const rest = await test.operator.get(`/v1/operator/settings?limit=1&cursor=${first.next_cursor}`);
    expect(rest).toEqual({ items: [password], next_cursor: null });
  });
});

describe('after a restore', () => {
  const settingsFor = (signUp: string) => {
    const environment = { GPURENT_SIGN_UP: signUp, GPURENT_SMTP_PASSWORD_FILE: '/etc/hidden' };
    return describeSettings(Object.keys(environment), environment, { GPURENT_SIGN_UP: 'open' });
  };
  const copy = join(folder, 'copy.db');
  /** Restores the copy of a control plane whose sign-up was by invitation, and starts with another setting. */
  async function restoreAndStart(signUp: string, options = {}): Promise<void> {
    await test.core.stop();
    const { settings } = restore(copy, test.databaseFile, test.clock.now(), options);
    expect(settings?.map(({ value }) => value)).toEqual(['invitation', null]);
    await test.boot({ settings: settingsFor(signUp) });
  }

  it('it starts with settings that protect less than those of the copy only where somebody accepts them', async () => {
    await test.restart({ settings: settingsFor('invitation') });
    backUp(test.databaseFile, copy);
    await restoreAndStart('invitation');
    await expect(restoreAndStart('open')).rejects.toThrow(
      /protect less than those of the restored copy: GPURENT_SIGN_UP is "open", and was "invitation" in the copy\. Change/,
    );
    // Also at the next try.
    await expect(test.restart()).rejects.toThrow('GPURENT_SIGN_UP is "open"');
    await test.core.stop();
    acceptSettings(test.databaseFile);
    await test.boot();
    // From then on as it pleases its operator.
    await test.restart();
    await restoreAndStart('open', { acceptsSettings: true });
  });

  it('for a drill it reaches nothing outside, and says so in every answer and on every page', async () => {
    const { api, organizationId } = await test.renter();
    await api.post('/v1/webhook-endpoints', { url: 'https://hooks.example/' });
    const happens = async () => {
      await test.operator.post(`/v1/operator/organizations/${organizationId}/credits`, {
        amount_micro: 1,
        reason: 'x',
      });
      for (let turn = 0; turn < 3; turn++) test.advance(1_000);
    };
    await happens();
    expect(resolved).toBeGreaterThan(0);
    const drilled = join(folder, 'drilled.db');
    backUp(test.databaseFile, drilled);
    mkdirSync(join(folder, 'console/assets'), { recursive: true });
    writeFileSync(join(folder, 'console/index.html'), '<html><body class="a"><div id="root"></div></body></html>');
    writeFileSync(join(folder, 'console/index.html.br'), 'without the banner');
    await test.core.stop();
    restore(drilled, test.databaseFile, test.clock.now(), { isDrill: true, acceptsSettings: true });
    const payments = () => {
      throw new Error('the payment provider is opened');
    };
    await test.boot({ payments, consoleFolder: join(folder, 'console') });
    const before = resolved;
    await happens();
    expect(resolved).toBe(before);
    expect(test.grpcAddress).toBe('');
    expect(test.core.platform).toMatchObject({ mail: null, backups: null });
    expect((await fetch(`${test.url}/healthz`)).headers.get('gpurent-drill')).toBe('yes');
    for (const path of ['/', '/instances', '/sign-in']) {
      const page = await fetch(`${test.url}${path}`, { headers: { 'Accept-Encoding': 'br' } });
      expect(await page.text()).toMatch(/<body[^>]*><p role="status"><strong>This is a drill on a restored copy/);
    }
    // A copy of a drill, restored without one, is none.
    backUp(test.databaseFile, join(folder, 'of-drill.db'));
    await test.core.stop();
    restore(join(folder, 'of-drill.db'), test.databaseFile, test.clock.now());
    const store = new Store(test.databaseFile, test.clock);
    expect(store.transact(isDrill)).toBe(false);
    store.close();
    restore(drilled, test.databaseFile, test.clock.now(), { isDrill: true });
    await test.boot();
  });
});
