import BetterSqlite3 from 'better-sqlite3';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { placeAfter } from '../../control-plane/services/events/list.js';
import { recordNote } from '../../control-plane/services/events/timeline.js';
import { eventually } from '../../scripts/eventually.js';
import type { InstanceBody } from '../harness/api-client.js';
import { Browser } from '../harness/browser.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { EventReader } from '../harness/event-reader.js';
import type { FakeAgent } from '../harness/fake-agent.js';

let test: TestControlPlane;
let agent: FakeAgent;
let renter: Renter;
let body: { offer_id: string; template_id: string; disk_gb: number };
let id: string;

beforeAll(async () => {
  test = await TestControlPlane.start();
  agent = await test.host();
  renter = await test.renter();
  body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
  ({ id } = await renter.api.post<InstanceBody>('/v1/instances', body));
  await statusIs(renter.api, id, 'running');
});
afterAll(() => test.stop());

interface Commits {
  statements: { commit: { run(): void } };
}

/** Makes the commits of groups fail until the returned function is called, as on a disk that fails. */
function breakCommits(): () => void {
  const group = Reflect.get(test.core.platform.store, 'group') as Commits;
  const { commit } = group.statements;
  const fail = () => {
    throw new BetterSqlite3.SqliteError('disk I/O error', 'SQLITE_IOERR');
  };
  group.statements.commit = { run: fail };
  return () => void (group.statements.commit = commit);
}

it('while commits fail, everybody in a group is told so, and nothing has happened', async () => {
  const before = test.dump();
  const mend = breakCommits();
  const deploys = [1, 2, 3].map(() => renter.api.request<{ code: string }>('POST', '/v1/instances', body));
  const refused = renter.api.request<{ code: string }>('POST', `/v1/instances/${id}/start`);
  for (const answer of await Promise.all(deploys)) {
    expect(answer).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
    expect(answer.headers.get('retry-after')).toBe('5');
  }
  expect((await test.api.request('GET', '/healthz')).status).toBe(200);
  expect((await test.api.request('GET', '/readyz')).status).toBe(503);
  // It has not read what was lost, or was told like the others: one or the other, as it comes.
  expect([409, 503]).toContain((await refused).status);
  mend();
  expect(test.dump()).toEqual(before);
  const { items } = await renter.api.get<{ items: InstanceBody[] }>('/v1/instances');
  expect(items.map((instance) => instance.id)).toEqual([id]);
  expect((await renter.api.request('POST', '/v1/instances', body)).status).toBe(201);
});

it('a browser whose sign-out was lost keeps its cookie', async () => {
  const { api, email } = await test.renter(0);
  const { port } = new URL(test.url);
  const browser = new Browser(Number(port), `http://localhost:${port}`);
  const form = await browser.open('/sign-in');
  const page = await browser.submit(form, '/sign-in', { email, password: 'a renter password' });
  const mend = breakCommits();
  const lost = await browser.submit(page, '/sign-out');
  expect([lost.status, lost.headers.location, lost.headers['set-cookie']]).toEqual([503, undefined, undefined]);
  mend();
  expect((await browser.open('/account')).url).toMatch(/\/account$/);
  expect((await api.request('GET', '/v1/me')).status).toBe(200);
});

it('a host is told that its report has arrived only once it is committed', async () => {
  const mend = breakCommits();
  agent.report(id, 7);
  await eventually('the failure', () => test.logged(50).some((line) => line.includes('a host message failed')));
  expect(agent.hasAcknowledged(id, 7)).toBe(false);
  mend();
  agent.report(id, 7);
  await eventually('the acknowledgement', () => agent.hasAcknowledged(id, 7));
});

it('a reader gets no event that was lost with its group, and each one that takes its number', async () => {
  const own = await test.renter();
  const offer_id = await test.offer(await test.host());
  const open = () => EventReader.open(`${test.url}/v1/events`, own.api.token);
  const { last_id: start } = await own.api.get<{ last_id: string }>('/v1/events?limit=1');
  const mend = breakCommits();
  const deploys = [1, 2, 3].map(() => own.api.request('POST', '/v1/instances', { ...body, offer_id }));
  // Some begin in the turn in which the events are written that will be lost.
  const readers = await Promise.all([open(), open(), open()]);
  for (const { status } of await Promise.all(deploys)) expect(status).toBe(503);
  const { platform } = test.core;
  const place = platform.store.join(() => {
    platform.store.transact((tx) => recordNote(tx, id, 'ssh_silent', 'lost'));
    return placeAfter(platform, renter.organizationId, undefined);
  });
  await nextTurn();
  mend();
  expect(place.id).toBe((await renter.api.get<{ last_id: string }>('/v1/events?limit=1')).last_id);
  const instance = await own.api.post<InstanceBody>('/v1/instances', { ...body, offer_id });
  await statusIs(own.api, instance.id, 'running');
  const { items } = await own.api.get<{ items: { id: string }[] }>(`/v1/events?after=${start}`);
  expect(items.length).toBeGreaterThan(1);
  for (const reader of readers) {
    await reader.has(items.length);
    expect(reader.events.map(({ data }) => data)).toEqual(items);
    reader.kill();
  }
});
