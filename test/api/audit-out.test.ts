import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Config } from '../../control-plane/config.js';
import { recordEvent } from '../../control-plane/services/events/record.js';
import { recordAct } from '../../control-plane/services/system/acts.js';
import { MOST_QUEUED_ACTS } from '../../control-plane/services/system/act-queue.js';
import { userActor } from '../../control-plane/domain/act.js';
import { OPERATORS } from '../../control-plane/domain/event.js';
import { backUp, restore } from '../../control-plane/store/backup.js';
import { query } from '../../control-plane/store/sql.js';
import type { Tx } from '../../control-plane/store/store.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil, files } from '../harness/advance-until.js';
import { AUDIT_SECRET, Pipe, linesOnceThereAre, type AuditLine } from '../harness/audit-out.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import { memoryFolder } from '../harness/memory-folder.js';
import { WebhookReceiver, verify } from '../harness/webhook-receiver.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

let receiver: WebhookReceiver;
let pipe: Pipe;
let test: TestControlPlane;
let renter: Renter;

beforeEach(async () => {
  receiver = await WebhookReceiver.start();
  pipe = new Pipe();
  const { trusted, resolve } = receiver.reachable;
  test = await TestControlPlane.start({ webhooks: { trusted, resolve } });
  renter = await test.renter(0);
});
afterEach(async () => {
  await test.stop();
  await receiver.stop();
  pipe.close();
});

const webhook = () => ({ url: receiver.url('/audit'), secret: AUDIT_SECRET });

/** Starts again with these outputs, whose cursors begin then. */
async function switchOn(
  auditOut: NonNullable<Config['auditOut']> = { stdout: false, webhook: webhook() },
): Promise<void> {
  test.auditFile = pipe.file;
  await test.restart({ auditOut });
  test.advance(SECOND);
}

/** One act of an operator, which is also one in the organization. */
const credit = (reason: string) =>
  test.operator.post(`/v1/operator/organizations/${renter.organizationId}/credits`, { amount_micro: 1, reason });

const transact = <T>(work: (tx: Tx) => T): T => test.core.platform.store.transact(work);

const noteAway = (name: string) =>
  transact((tx) => {
    const data = { machine_id: name, machine_name: name, since: new Date(tx.now).toISOString() };
    recordEvent(tx, OPERATORS, 'machine.away', `machines/${name}`, data);
  });

const posted = (): AuditLine[] => receiver.at('/audit').flatMap(({ body }) => JSON.parse(body) as AuditLine[]);
const once = (count: number, look = posted) => linesOnceThereAre(test, count, look);
const reasons = (lines: readonly AuditLine[], source = 'audit') =>
  lines.filter((line) => line.source === source).map(({ details }) => details['reason']);

/** Lets an attempt that may be under way end: nothing more comes then. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) {
    test.advance(SECOND);
    await test.roundTrip();
  }
}

async function metric(): Promise<Record<string, number>> {
  const text = await (await fetch(`${test.url}/metrics`)).text();
  const found = text.matchAll(/^gpurent_audit_out_lag_seconds\{output="(\w+)"\} (\S+)$/gm);
  return Object.fromEntries([...found].map(([, output = '', value]) => [output, Number(value)]));
}

describe('the lines', () => {
  it('say who has done what: operators, what operators are told, and acts in organizations', async () => {
    await switchOn();
    await credit('a gift');
    await renter.api.request('PATCH', '/v1/orgs/current', { name: 'Renamed' });
    noteAway('amber');
    const lines = await once(4);
    const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/) as string;
    expect(lines.filter(({ source }) => source === 'audit')).toEqual([
      {
        source: 'audit',
        id: expect.stringMatching(/^audit:\d+\.\d+$/) as string,
        at,
        actor: { kind: 'operator', id: expect.any(String) as string, email: 'operator@example.com' },
        action: 'organization.credit',
        subject: renter.organizationId,
        details: { amount_micro: 1, reason: 'a gift' },
      },
    ]);
    expect(lines.filter(({ source }) => source === 'event')).toEqual([
      {
        source: 'event',
        id: expect.stringMatching(/^event:\d+\.\d+$/) as string,
        at,
        actor: { kind: 'system' },
        action: 'machine.away',
        subject: 'machines/amber',
        details: { machine_id: 'amber', machine_name: 'amber', since: at },
      },
    ]);
    expect(lines.filter(({ source }) => source === 'organization')).toMatchObject([
      { actor: { kind: 'operator', id: null }, action: 'credit.grant', details: { reason: 'a gift' } },
      {
        actor: { kind: 'user', id: renter.userId },
        action: 'organization.rename',
        organization_id: renter.organizationId,
        subject: `orgs/${renter.organizationId}`,
        details: { reason: null },
      },
    ]);
    expect(new Set(lines.map(({ id }) => id)).size).toBe(4);
  });

  it('begin with their source, on one line each, whatever strangers write', async () => {
    await switchOn({ stdout: true });
    const strange = 'a\nb\u001b[2J\u0085\u2028\u202e"}{"source":"audit"';
    noteAway(strange);
    noteAway('x'.repeat(100_000));
    const { organizationId, userId, email } = renter;
    const by = { ...userActor(userId, email), reason: strange };
    transact((tx) => recordAct(tx, organizationId, by, 'instance.update', strange));
    await once(3, () => pipe.lines());
    const text = pipe.drain();
    for (const line of text.split('\n').slice(0, -1)) {
      expect(line).toMatch(/^\{"source":"(audit|event|organization)","id":"/);
      expect(Buffer.byteLength(line)).toBeLessThan(4_096);
    }
    // oxlint-disable-next-line no-control-regex
    expect(text.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u202e]/);
    const lines = pipe.lines();
    expect(lines.map(({ cut }) => cut)).toEqual([undefined, true, undefined]);
    expect(lines[0]).toMatchObject({ subject: `machines/${strange}`, details: { machine_name: strange } });
    expect(lines[2]).toMatchObject({ subject: strange, details: { reason: strange } });
  });

  it('have no secret, no address of a renter, and no network', async () => {
    await switchOn({ stdout: true, webhook: webhook() });
    const secrets = [AUDIT_SECRET, test.secretKey.toString('hex'), test.secretKey.toString('base64')];
    const keep = (value: unknown) => {
      for (const [, secret = ''] of JSON.stringify(value).matchAll(/"(?:secret|token)":"([^"]+)"/g))
        secrets.push(secret);
    };
    keep(await renter.api.post('/v1/api-keys', { name: 'build' }));
    keep(await renter.api.post('/v1/webhook-endpoints', { url: 'https://hooks.example/in?token=hidden-in-url' }));
    keep(await test.operator.post('/v1/operator/enrollment-tokens', {}));
    keep(await renter.api.post('/v1/orgs/current/invites', { email: 'hidden@invited.example', role: 'member' }));
    const env = [{ key: 'PASSWORD', value: 'hidden in the environment' }];
    await test.operator.post('/v1/operator/templates', { name: 'T', image: 'test:1', env });
    const company = {
      name: 'Acme',
      issuer: 'https://acme.example',
      client_id: 'c',
      client_secret: 'hidden client secret',
    };
    await test.operator.request('PUT', '/v1/operator/issuers/acme', { ...company, listed: true, domains: [] });
    expect(secrets.length).toBeGreaterThan(5);
    await once(6, () => pipe.lines());
    await once(6);
    await settle();
    const actions = pipe.lines().map(({ action }) => action);
    expect(actions).toEqual(
      expect.arrayContaining([
        'api_key.create',
        'webhook.create',
        'enrollment_token.create',
        'issuer.set',
        'invite.create',
      ]),
    );
    const told =
      pipe.drain() +
      receiver
        .at('/audit')
        .map(({ body }) => body)
        .join('');
    for (const secret of [...secrets, renter.email, '127.0.0.1']) expect(told).not.toContain(secret);
    expect(told).not.toMatch(/hidden/);
    expect(test.logged(0).join('')).not.toContain(AUDIT_SECRET);
  });
});

describe('an output', () => {
  it('begins at the newest, each source by itself, and goes on after a restart', async () => {
    await credit('before');
    noteAway('before');
    await switchOn();
    await credit('first');
    await once(2);
    await credit('while down: nobody looks');
    await test.restart();
    await once(4);
    await settle();
    expect(reasons(posted())).toEqual(['first', 'while down: nobody looks']);
    expect(reasons(posted(), 'organization')).toEqual(['first', 'while down: nobody looks']);
    expect(posted()).toHaveLength(4);
  });

  it('that was off begins at the newest again, and meanwhile nothing is queued for it', async () => {
    await switchOn();
    await credit('first');
    await once(2);
    await switchOn({ stdout: false });
    await credit('while off');
    expect(transact((tx) => tx.all(query.selectFrom('audit_cursors').selectAll()))).toEqual([]);
    const queued = transact((tx) => tx.all(query.selectFrom('queued_acts').selectAll()));
    expect(queued).toHaveLength(1);
    await switchOn();
    await credit('second');
    await once(4);
    expect(reasons(posted())).toEqual(['first', 'second']);
    expect(reasons(posted(), 'organization')).toEqual(['first', 'second']);
  });

  it('gets all lines in their order, in batches of at most 100', async () => {
    await switchOn();
    const { organizationId, userId, email } = renter;
    transact((tx) => {
      for (let number = 0; number < 250; number++)
        recordAct(tx, organizationId, userActor(userId, email), 'instance.update', `instances/${number}`);
    });
    for (let number = 0; number < 150; number++) noteAway(String(number));
    // One run: each full batch begins the next one.
    test.advance(SECOND);
    await eventually('all lines', () => posted().length === 400);
    const subjects = (source: string) =>
      posted()
        .filter((line) => line.source === source)
        .map(({ subject }) => subject);
    expect(subjects('organization')).toEqual(Array.from({ length: 250 }, (_, number) => `instances/${number}`));
    expect(subjects('event')).toEqual(Array.from({ length: 150 }, (_, number) => `machines/${number}`));
    for (const { body } of receiver.at('/audit'))
      expect((JSON.parse(body) as unknown[]).length).toBeLessThanOrEqual(100);
    await advanceUntil(
      'what was delivered is deleted',
      { clock: test, stepMs: SECOND },
      () => transact((tx) => tx.all(query.selectFrom('queued_acts').select('id'))).length <= 1,
    );
  });

  it('in a drill gets nothing, and has no lag', async () => {
    const folder = memoryFolder('gpurent-drill-');
    await switchOn({ stdout: true, webhook: webhook() });
    await credit('before the copy');
    backUp(test.databaseFile, join(folder, 'copy.db'));
    await test.core.stop();
    restore(join(folder, 'copy.db'), test.databaseFile, test.clock.now(), { isDrill: true, acceptsSettings: true });
    await test.boot();
    await credit('in the drill');
    await settle();
    expect(posted()).toEqual([]);
    expect(pipe.lines()).toEqual([]);
    expect(await metric()).toEqual({});
  });

  it('after a restore gets lines again by the same ids, and new ones by ids that were never used', async () => {
    const folder = memoryFolder('gpurent-restore-');
    await switchOn();
    await credit('kept');
    backUp(test.databaseFile, join(folder, 'copy.db'));
    await credit('lost');
    await once(4);
    await test.core.stop();
    test.clock.advance(SECOND);
    restore(join(folder, 'copy.db'), test.databaseFile, test.clock.now(), { acceptsSettings: true });
    await test.boot();
    await credit('new');
    await once(8);
    const ofAudit = posted().filter(({ source }) => source === 'audit');
    expect(reasons(ofAudit)).toEqual(['kept', 'lost', 'kept', 'new']);
    const [kept, lost, again, fresh] = ofAudit.map(({ id }) => id);
    expect(again).toBe(kept);
    expect(fresh).not.toBe(lost);
    const byId = new Map<string, string>();
    for (const line of posted()) {
      const text = JSON.stringify(line);
      expect(byId.get(line.id) ?? text).toBe(text);
      byId.set(line.id, text);
    }
  });

  it('that is behind is told what was deleted before it came to it, and goes on', async () => {
    await switchOn();
    for (let number = 0; number < 5; number++) noteAway(String(number));
    const { organizationId, userId, email } = renter;
    const act = () =>
      transact((tx) => recordAct(tx, organizationId, userActor(userId, email), 'instance.update', 'instances/x'));
    for (let number = 0; number < 3; number++) act();
    transact((tx) => {
      tx.run(query.deleteFrom('events').where('stream', '=', OPERATORS).where('data', 'not like', '%"4"%'));
      tx.run(query.deleteFrom('organization_acts').where('organization_id', '=', organizationId));
    });
    await once(3);
    act();
    await once(4);
    const told = posted().map(({ source, action, details }) => ({ source, action, lines: details['lines'] }));
    expect(told.filter(({ source }) => source === 'event')).toEqual([
      { source: 'event', action: 'audit_lines.lost', lines: 4 },
      { source: 'event', action: 'machine.away', lines: undefined },
    ]);
    expect(told.filter(({ source }) => source === 'organization')).toEqual([
      { source: 'organization', action: 'audit_lines.lost', lines: 3 },
      { source: 'organization', action: 'instance.update', lines: undefined },
    ]);
  });

  it('that takes nothing keeps no more than so many acts of organizations waiting', async () => {
    await switchOn();
    receiver.answer = (response) => void response.writeHead(500).end();
    await credit('the oldest');
    transact((tx) => tx.run(query.updateTable('queued_acts').set({ id: MOST_QUEUED_ACTS })));
    await credit('the next');
    await credit('the newest');
    const queued = () => transact((tx) => tx.all(query.selectFrom('queued_acts').select('id').orderBy('id')));
    expect(queued().map(({ id }) => id - MOST_QUEUED_ACTS)).toEqual([0, 1, 2]);
    transact((tx) => tx.run(query.updateTable('queued_acts').set({ id: 1 }).where('id', '=', MOST_QUEUED_ACTS)));
    await credit('one more');
    expect(queued().map(({ id }) => id - MOST_QUEUED_ACTS)).toEqual([1, 2, 3]);
  });
});

describe('the webhook', () => {
  it('has a signature that the library of the specification takes, over what it reads', async () => {
    await switchOn();
    await credit('signed');
    await once(2);
    const [message] = receiver.at('/audit');
    if (!message) throw new Error('nothing came');
    expect(verify(message, AUDIT_SECRET, test.clock.now())).toMatchObject([
      { source: 'audit' },
      { source: 'organization' },
    ]);
    expect(message.headers['content-type']).toBe('application/json');
    const other = `whsec_${Buffer.alloc(32, 'another').toString('base64')}`;
    expect(() => verify(message, other, test.clock.now())).toThrow('No matching signature');
    expect(() => verify({ ...message, body: `${message.body} ` }, AUDIT_SECRET, test.clock.now())).toThrow();
  });

  it('is tried again with pauses, with the same id for the same lines, and loses nothing', async () => {
    await switchOn();
    receiver.answer = (response) => void response.writeHead(500).end();
    await credit('delayed');
    const attempts: number[] = [];
    for (let seconds = 0; seconds < 3 * 60; seconds += 5) {
      test.advance(5 * SECOND);
      await settleAttempt();
      attempts.push(receiver.at('/audit').length);
    }
    // At once, after 5 s, 30 s and 2 minutes.
    expect(attempts.at(-1)).toBe(4);
    expect(new Set(receiver.at('/audit').map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect((await metric())['webhook']).toBeGreaterThanOrEqual(180);
    expect(test.logged(40).filter((line) => line.includes('audit lines'))).toHaveLength(1);
    expect(test.logged(0).join('')).not.toContain(receiver.url('/audit'));
    receiver.answer = (response) => void response.writeHead(204).end();
    test.advance(5 * MINUTE);
    await eventually('its end', async () => (await metric())['webhook'] === 0);
    expect(receiver.at('/audit')).toHaveLength(5);
    expect(test.logged(30).some((line) => line.includes('delivered again'))).toBe(true);
  });

  it('is left alone for as long as it asks', async () => {
    await switchOn();
    receiver.answer = (response) => void response.writeHead(429, { 'retry-after': '3600' }).end();
    await credit('patient');
    test.advance(SECOND);
    await settleAttempt();
    test.advance(50 * MINUTE);
    await settleAttempt();
    expect(receiver.at('/audit')).toHaveLength(1);
    test.advance(11 * MINUTE);
    await settleAttempt();
    expect(receiver.at('/audit')).toHaveLength(2);
  });

  it('follows no redirect', async () => {
    await switchOn();
    receiver.answer = (response) => void response.writeHead(307, { location: receiver.url('/elsewhere') }).end();
    await credit('redirected');
    test.advance(SECOND);
    await settleAttempt();
    expect(receiver.at('/elsewhere')).toEqual([]);
    expect(test.logged(40).join('')).toContain('redirected 307');
    receiver.answer = (response) => void response.writeHead(204).end();
    test.advance(MINUTE);
    await settleAttempt();
    expect(reasons(posted()).length).toBeGreaterThan(1);
    expect((await metric())['webhook']).toBe(0);
  });

  it('that does not answer gets one attempt at a time, and ends it', async () => {
    await switchOn();
    receiver.answer = () => {};
    await credit('slow');
    test.advance(SECOND);
    await eventually('the attempt', () => receiver.at('/audit').length === 1);
    for (let second = 0; second < 13; second++) {
      test.advance(SECOND);
      await test.roundTrip();
    }
    // Time in which a second one would have come.
    for (let turn = 0; turn < 20; turn++) await test.roundTrip();
    expect(receiver.at('/audit')).toHaveLength(1);
    test.clock.advance(2 * SECOND);
    await eventually('its end', () => test.logged(40).join('').includes('timed_out'));
    test.advance(6 * SECOND);
    await eventually('the next attempt', () => receiver.at('/audit').length === 2);
  });
});

describe('standard output', () => {
  it('whose reader reads nothing delays lines and loses none, while the program goes on', async () => {
    await switchOn({ stdout: true, webhook: webhook() });
    const filled = pipe.fill();
    expect(filled).toBeGreaterThan(4_000);
    for (let number = 0; number < 150; number++) noteAway(String(number));
    for (let second = 0; second < 30; second++) {
      test.advance(SECOND);
      await test.roundTrip();
    }
    // A reader that is slow is no fault.
    expect(test.logged(40)).toEqual([]);
    // The other output does not wait for this one.
    await once(150);
    expect((await metric())['webhook']).toBe(0);
    expect((await metric())['stdout']).toBeGreaterThanOrEqual(29);
    // The reader reads a little at a time.
    await advanceUntil('all lines', { clock: test, stepMs: SECOND, parties: [files] }, () => {
      pipe.drain(6_000);
      return pipe.drain(0).split('\n').filter(Boolean).length >= 150;
    });
    expect(pipe.lines().map(({ subject }) => subject)).toEqual(Array.from({ length: 150 }, (_, n) => `machines/${n}`));
    await eventually('its end', async () => (await metric())['stdout'] === 0);
  });

  it('that is full lets the control plane stop, and gets its lines after the next start', async () => {
    await switchOn({ stdout: true });
    pipe.fill();
    await credit('waiting');
    test.advance(SECOND);
    await settle();
    await test.restart();
    pipe.drain();
    await once(2, () => pipe.lines());
    expect(reasons(pipe.lines())).toEqual(['waiting']);
  });
});

/** Lets an attempt end: its timer is gone then. */
async function settleAttempt(): Promise<void> {
  let seen = 0;
  await eventually('the end of the attempt', () => (seen = test.clock.waiting > idle ? 0 : seen + 1) === 3);
}
let idle = 0;
beforeEach(() => {
  idle = test.clock.waiting;
});
