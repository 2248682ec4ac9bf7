import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { afterAll, describe, expect, it } from 'vitest';
import { parseConfig as parseAgentConfig } from '../../agent/config.js';
import { parseConfig } from '../../control-plane/config.js';
import { createLogger } from '../../shared/logger.js';

const folder = mkdtempSync(join(tmpdir(), 'gpurent-config-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('the agent’s settings', () => {
  it.each([
    ['GPURENT_AGENT_SUBNET', '10.213.0.0/25', /of \/8 to \/24/],
    ['GPURENT_AGENT_SUBNET', '10.213.0.1/16', /IPv4 network/],
    ['GPURENT_AGENT_READY_NETWORKS', '10', /from 0 to 9/],
    ['GPURENT_AGENT_READY_NETWORKS', '-1', /from 0 to 9/],
    ['GPURENT_AGENT_DNS', 'dns.example.com', /addresses of name servers/],
    ['GPURENT_AGENT_DNS', ' , ', /addresses of name servers/],
    ['GPURENT_AGENT_EGRESS_GUARD', 'yes', /"on", or "off"/],
    ['GPURENT_AGENT_EGRESS_ALLOW', '10.0.0.0/8,nas', /names "nas"/],
    ['GPURENT_AGENT_GPU_ATTACH', 'all', /"device-requests" or "cdi"/],
    ['GPURENT_AGENT_METRICS_ADDRESS', '0.0.0.0:9464', /on loopback/],
    ['GPURENT_AGENT_METRICS_ADDRESS', '127.0.0.1:99999', /on loopback/],
    ['GPURENT_AGENT_VMS', 'xen', /give "kvm", "off", or, for trying out, "tcg"/],
    ['GPURENT_AGENT_VM_STOP_SECONDS', '0', /from 1 to 999/],
    ['GPURENT_AGENT_LOG_FORMAT', 'xml', /"text" for people or "json"/],
    ['GPURENT_AGENT_PORTS', '1-2', /GPURENT_AGENT_PORTS is "1-2"/],
  ])('%s=%s is refused, saying what to give', (name, value, saying) => {
    expect(() => parseAgentConfig({ [name]: value })).toThrow(saying);
    expect(() => parseAgentConfig({ [name]: value })).toThrow(name);
  });

  it('name images that were made on the host', () => {
    const of = (value: string) => parseAgentConfig({ GPURENT_AGENT_LOCAL_IMAGES: value }).localImages;
    expect(parseAgentConfig({}).localImages).toBe('any');
    expect(of('none')).toEqual([]);
    expect(of('own/app:1, own/other')).toEqual(['own/app:1', 'own/other']);
    expect(() => of('no name')).toThrow('GPURENT_AGENT_LOCAL_IMAGES');
  });

  it('keep renters in unless the owner says otherwise', () => {
    expect(parseAgentConfig({}).egress).toEqual({
      resolvers: ['1.1.1.1', '8.8.8.8'],
      allowed: [],
      instances: '10.213.0.0/16',
      mostMbit: null,
    });
    const own = { GPURENT_AGENT_DNS: '192.168.1.1', GPURENT_AGENT_EGRESS_ALLOW: '192.168.7.0/24' };
    expect(parseAgentConfig(own).egress).toMatchObject({ resolvers: ['192.168.1.1'], allowed: ['192.168.7.0/24'] });
    expect(parseAgentConfig({ GPURENT_AGENT_EGRESS_GUARD: 'off' }).egress).toBeNull();
  });
});

describe('logs', () => {
  it.each(['json', 'text'] as const)('as %s show no secret', (format) => {
    let written = '';
    const destination = new Writable({
      write: (chunk, _, done) => {
        written += String(chunk);
        done();
      },
    });
    const logger = createLogger('agent', 'info', format, destination);
    logger.info({ token: 'a secret', instanceId: 'i' }, 'command finished');
    expect(written).toContain('command finished');
    expect(written).toContain('i');
    expect(written).not.toContain('a secret');
    expect(written.startsWith('{')).toBe(format === 'json');
  });
});

describe('where to report abuse', () => {
  const parse = (settings: object) => parseConfig({ GPURENT_DATABASE: join(folder, 'gpurent.db'), ...settings }).abuse;

  it('is an address, a page, both or nothing', () => {
    const [email, url] = ['abuse@gpus.example', 'https://gpus.example/abuse'];
    expect(parse({})).toEqual({});
    expect(parse({ GPURENT_ABUSE_EMAIL: email })).toEqual({ email });
    expect(parse({ GPURENT_ABUSE_EMAIL: email, GPURENT_ABUSE_URL: url })).toEqual({ email, url });
  });

  it.each([
    ['GPURENT_ABUSE_EMAIL', 'us', /give one e-mail address/],
    ['GPURENT_ABUSE_EMAIL', 'a@b.example, c@d.example', /give one e-mail address/],
    ['GPURENT_ABUSE_URL', 'http://gpus.example/abuse', /give an https address/],
    ['GPURENT_ABUSE_URL', 'javascript:alert(1)', /give an https address/],
  ])('%s=%s is refused', (name, value, saying) => {
    expect(() => parse({ [name]: value })).toThrow(saying);
    expect(() => parse({ [name]: value })).toThrow(name);
  });
});

describe('payments by Stripe', () => {
  const secret = join(folder, 'secret');
  writeFileSync(secret, 'sk_test_1\n');
  writeFileSync(join(folder, 'empty'), '\n');
  const settings = {
    GPURENT_DATABASE: join(folder, 'gpurent.db'),
    GPURENT_PAYMENTS: 'stripe',
    GPURENT_STRIPE_SECRET_KEY_FILE: secret,
    GPURENT_STRIPE_WEBHOOK_SECRET_FILE: secret,
    GPURENT_STRIPE_RETURN_URL: 'https://example.com/billing',
  };

  it('take a key, a webhook secret and a way back', () => {
    expect(parseConfig(settings).payments?.()).toMatchObject({ name: 'stripe', webhook: { title: 'Stripe' } });
    expect(parseConfig({ GPURENT_DATABASE: settings.GPURENT_DATABASE }).payments?.().name).toBe('manual');
  });

  it.each([
    ['GPURENT_STRIPE_SECRET_KEY_FILE', '', /needs GPURENT_STRIPE_SECRET_KEY_FILE/],
    ['GPURENT_STRIPE_WEBHOOK_SECRET_FILE', join(folder, 'none'), /GPURENT_STRIPE_WEBHOOK_SECRET_FILE/],
    ['GPURENT_STRIPE_SECRET_KEY_FILE', join(folder, 'empty'), /GPURENT_STRIPE_SECRET_KEY_FILE/],
    ['GPURENT_STRIPE_RETURN_URL', 'back', /GPURENT_STRIPE_RETURN_URL/],
    ['GPURENT_PAYMENTS', 'cash', /give manual or stripe/],
  ])('are refused with %s=%s', (name, value, saying) => {
    expect(() => parseConfig({ ...settings, [name]: value })).toThrow(saying);
  });
});

describe('audit lines', () => {
  const secret = `whsec_${Buffer.alloc(24, 'k').toString('base64')}`;
  const file = join(folder, 'audit.secret');
  writeFileSync(file, `${secret}\n`);
  const database = { GPURENT_DATABASE: join(folder, 'gpurent.db') };
  const url = 'https://logs.example/in?token=hidden';
  const parse = (environment: Record<string, string>) => parseConfig({ ...database, ...environment }).auditOut;

  it('go nowhere unless the operator says where', () => {
    expect(parse({})).toEqual({ stdout: false });
    expect(parse({ GPURENT_AUDIT_STDOUT: 'yes' })).toEqual({ stdout: true });
    const webhook = { url, secret };
    expect(parse({ GPURENT_AUDIT_WEBHOOK_URL: url, GPURENT_AUDIT_WEBHOOK_SECRET_FILE: file })).toEqual({
      stdout: false,
      webhook,
    });
    expect(parse({ GPURENT_AUDIT_WEBHOOK_URL: url, GPURENT_AUDIT_WEBHOOK_SECRET: secret })).toEqual({
      stdout: false,
      webhook,
    });
    const local = { GPURENT_AUDIT_WEBHOOK_URL: 'http://127.0.0.1:3100/in', GPURENT_AUDIT_WEBHOOK_SECRET: secret };
    expect(parse(local)?.webhook?.url).toBe('http://127.0.0.1:3100/in');
  });

  it.each([
    ['GPURENT_AUDIT_STDOUT', 'true', /give yes or no/],
    ['GPURENT_AUDIT_WEBHOOK_URL', '', /GPURENT_AUDIT_WEBHOOK_SECRET_FILE is set, but not GPURENT_AUDIT_WEBHOOK_URL/],
    ['GPURENT_AUDIT_WEBHOOK_URL', 'http://logs.example/hidden', /is no https address/],
    ['GPURENT_AUDIT_WEBHOOK_URL', 'ftp://logs.example/hidden', /is no https address/],
    ['GPURENT_AUDIT_WEBHOOK_URL', 'hidden', /is no https address/],
    ['GPURENT_AUDIT_WEBHOOK_URL', 'https://me:hidden@logs.example/', /without them/],
    ['GPURENT_AUDIT_WEBHOOK_URL', 'https://logs.example/#hidden', /without them/],
    ['GPURENT_AUDIT_WEBHOOK_SECRET_FILE', '', /needs GPURENT_AUDIT_WEBHOOK_SECRET_FILE or/],
    ['GPURENT_AUDIT_WEBHOOK_SECRET', secret, /and not both/],
    ['GPURENT_AUDIT_WEBHOOK_SECRET_FILE', join(folder, 'none'), /GPURENT_AUDIT_WEBHOOK_SECRET_FILE/],
    ['GPURENT_AUDIT_WEBHOOK_SECRET_FILE', join(folder, 'empty'), /GPURENT_AUDIT_WEBHOOK_SECRET_FILE/],
  ])('%s=%s is refused, without a secret in what is said', (name, value, saying) => {
    const given = { GPURENT_AUDIT_WEBHOOK_URL: url, GPURENT_AUDIT_WEBHOOK_SECRET_FILE: file, [name]: value };
    expect(() => parse(given)).toThrow(saying);
    expect(() => parse(given)).not.toThrow(/hidden|whsec_[A-Za-z0-9]{9}/);
  });

  it.each(['hidden', 'whsec_', `whsec_${'A'.repeat(28)}`, `whsec_${'A'.repeat(100)}`, `whsec_${'*'.repeat(40)}`])(
    'need a secret that can sign, and %s is none',
    (bad) => {
      const given = { GPURENT_AUDIT_WEBHOOK_URL: url, GPURENT_AUDIT_WEBHOOK_SECRET: bad };
      expect(() => parse(given)).toThrow(/has no signing secret: give whsec_/);
      expect(() => parse(given)).not.toThrow(/hidden|AAAA|\*\*/);
    },
  );
});

it('operators need a second factor, or none', () => {
  const database = { GPURENT_DATABASE: join(folder, 'factors.db') };
  const factors = (value: string) => parseConfig({ ...database, GPURENT_OPERATORS_NEED_SECOND_FACTOR: value });
  expect([parseConfig(database), factors('yes')].map(({ operatorsNeedFactor }) => operatorsNeedFactor)).toEqual([
    false,
    true,
  ]);
  expect(() => factors('true')).toThrow('GPURENT_OPERATORS_NEED_SECOND_FACTOR is "true"; give yes or no');
});

it('anybody signs up, or only who is invited', () => {
  const database = { GPURENT_DATABASE: join(folder, 'sign-up.db') };
  expect(parseConfig(database).signUp).toBe('open');
  expect(parseConfig({ ...database, GPURENT_SIGN_UP: 'invitation' }).signUp).toBe('invitation');
  const none = { ...database, GPURENT_SIGN_UP: 'closed' };
  expect(() => parseConfig(none)).toThrow('GPURENT_SIGN_UP is "closed"; give open or invitation');
});

it('the public address is an origin', () => {
  const database = { GPURENT_DATABASE: join(folder, 'public.db') };
  const publicUrlOf = (value: string) => parseConfig({ ...database, GPURENT_PUBLIC_URL: value }).publicUrl;
  expect(publicUrlOf('')).toBeUndefined();
  expect(publicUrlOf('https://gpus.example:8443/')).toBe('https://gpus.example:8443');
  const withLogin = ['https://me@gpus.example', 'https://:secret@gpus.example'];
  for (const wrong of ['http://gpus.example', 'https://gpus.example/market', 'gpus.example', ...withLogin])
    expect(() => publicUrlOf(wrong)).toThrow('GPURENT_PUBLIC_URL');
});

it('the address that hosts dial can stand in a line for a shell', () => {
  const database = { GPURENT_DATABASE: join(folder, 'dialed.db') };
  const dialed = (value: string) => parseConfig({ ...database, GPURENT_PUBLIC_GRPC_ADDRESS: value }).publicGrpcAddress;
  expect(dialed('')).toBeUndefined();
  for (const right of ['gpus.example:8090', '203.0.113.7:1', '[2001:db8::7]:65535']) expect(dialed(right)).toBe(right);
  for (const wrong of ['gpus.example', 'gpus.example:0', '0.0.0.0:8090', '[::]:8090', '$(id):8090', 'a b:1', "a';b:1"])
    expect(() => dialed(wrong), wrong).toThrow(`GPURENT_PUBLIC_GRPC_ADDRESS is "${wrong}"; give`);
});

it('webhooks can reach the networks that the operator allows', () => {
  const database = { GPURENT_DATABASE: join(folder, 'webhooks.db') };
  const networksOf = (value: string) => parseConfig({ ...database, GPURENT_WEBHOOK_NETWORKS: value }).webhookNetworks;
  expect(networksOf('')).toEqual([]);
  expect(networksOf('10.1.0.0/16, fd00:1::/64,192.168.7.1')).toEqual(['10.1.0.0/16', 'fd00:1::/64', '192.168.7.1']);
  for (const wrong of ['10.1.0.0/33', '10.1.0/24', 'fd00::/129', 'fe80::1%eth0', 'all', '10.0.0.0/8/8', '10.0.0.0/'])
    expect(() => networksOf(wrong), wrong).toThrow('GPURENT_WEBHOOK_NETWORKS names');
});

it('an instance in error is destroyed after a day, or after as many hours as the operator says', () => {
  const database = { GPURENT_DATABASE: join(folder, 'errors.db') };
  expect(parseConfig(database).destroyErrorsAfterMs).toBe(24 * 3_600_000);
  expect(parseConfig({ ...database, GPURENT_DESTROY_ERRORS_AFTER_HOURS: '2' }).destroyErrorsAfterMs).toBe(7_200_000);
  const none = { ...database, GPURENT_DESTROY_ERRORS_AFTER_HOURS: '0' };
  expect(() => parseConfig(none)).toThrow('GPURENT_DESTROY_ERRORS_AFTER_HOURS is "0"');
});
