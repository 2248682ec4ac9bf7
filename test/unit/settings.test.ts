import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parseConfig } from '../../control-plane/config.js';
import { SHOWN_SETTINGS, describeSettings } from '../../control-plane/domain/setting.js';

const folder = mkdtempSync(join(tmpdir(), 'gpurent-settings-'));
afterAll(() => rmSync(folder, { recursive: true }));

const file = (name: string, content: string) => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};
const database = { GPURENT_DATABASE: join(folder, 'gpurent.db') };
const shown = (environment: Record<string, string>) => parseConfig({ ...database, ...environment }).settings ?? [];
const names = shown({}).map(({ name }) => name);

describe('the settings that operators see', () => {
  it('have no secret, whatever is set', () => {
    const settings = shown({
      GPURENT_PAYMENTS: 'stripe',
      GPURENT_STRIPE_SECRET_KEY_FILE: file('hidden-stripe', 'sk_hidden'),
      GPURENT_STRIPE_WEBHOOK_SECRET_FILE: file('hidden-webhook', 'whsec_hidden'),
      GPURENT_STRIPE_RETURN_URL: 'https://gpus.example/billing?token=hidden',
      GPURENT_SMTP_SERVER: 'mail.example:587',
      GPURENT_SMTP_USER: 'hidden-token',
      GPURENT_SMTP_PASSWORD_FILE: file('hidden-password', 'hidden'),
      GPURENT_MAIL_FROM: 'noreply@gpus.example',
      GPURENT_PUBLIC_URL: 'https://gpus.example',
      GPURENT_AUDIT_WEBHOOK_URL: 'https://logs.example/in?token=hidden',
      GPURENT_AUDIT_WEBHOOK_SECRET_FILE: file('hidden-audit', `whsec_${Buffer.alloc(24, 'hidden').toString('base64')}`),
      GPURENT_SECRET_KEY_FILE: join(folder, 'hidden.key'),
    });
    const key = parseConfig({ ...database, GPURENT_SECRET_KEY_FILE: join(folder, 'hidden.key') }).secretKey;
    expect(JSON.stringify(settings)).not.toMatch(/hidden/);
    for (const encoding of ['hex', 'base64', 'latin1'] as const)
      expect(JSON.stringify(settings)).not.toContain(key.toString(encoding));
    expect(settings.filter(({ name }) => /SECRET_KEY|PASSWORD|USER|RETURN/.test(name))).toEqual(
      ['SECRET_KEY_FILE', 'SMTP_PASSWORD_FILE', 'SMTP_USER', 'STRIPE_RETURN_URL', 'STRIPE_SECRET_KEY_FILE'].map(
        (name) => ({
          name: `GPURENT_${name}`,
          value: null,
          is_set: true,
          is_default: false,
          is_shown: false,
        }),
      ),
    );
  });

  it('show no value of a setting that nobody has said to show', () => {
    const ofNew = describeSettings(['GPURENT_NEW'], { GPURENT_NEW: 'hidden' }, { GPURENT_NEW: 'hidden, too' });
    expect(ofNew).toEqual([{ name: 'GPURENT_NEW', value: null, is_set: true, is_default: false, is_shown: false }]);
    const everything = Object.fromEntries(names.map((name) => [name, `${name}=value`]));
    const revealed = describeSettings(names, everything, everything).filter(({ value }) => value !== null);
    expect(revealed.map(({ name }) => name)).toEqual(SHOWN_SETTINGS);
    expect(names).toEqual(expect.arrayContaining([...SHOWN_SETTINGS]));
  });

  it('say what counts, and whether that is the default', () => {
    const settings = shown({ GPURENT_LOG_LEVEL: 'debug', GPURENT_SIGN_UP: 'open', GPURENT_ABUSE_EMAIL: '' });
    const of = (name: string) => settings.find((setting) => setting.name === `GPURENT_${name}`);
    expect(of('LOG_LEVEL')).toMatchObject({ value: 'debug', is_set: true, is_default: false });
    expect(of('SIGN_UP')).toMatchObject({ value: 'open', is_set: true, is_default: true });
    expect(of('BACKUP_KEEP')).toMatchObject({ value: '14', is_set: false, is_default: true });
    expect(of('ABUSE_EMAIL')).toMatchObject({ value: null, is_set: false, is_default: true, is_shown: true });
  });
});
