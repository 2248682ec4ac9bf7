import { randomUUID } from 'node:crypto';
import { insertRow } from '../../control-plane/store/sql.js';
import type BetterSqlite3 from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY_MS } from '../../shared/time.js';
import { makeUnsubscribeToken } from '../../control-plane/services/mail/unsubscribe.js';
import { query } from '../../control-plane/store/sql.js';
import type { ApiClient, Answer, InstanceBody } from '../harness/api-client.js';
import { linkedAccount, setCompany } from '../harness/companies.js';
import { fetchDocument } from '../harness/openapi-conformance.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { makePublicKey } from '../harness/keys.js';
import { addApp } from '../harness/second-factors.js';
import { idleSession, typedDeviceCode } from './own-things.js';
import { joined } from './world.js';
import {
  expected,
  type Cell,
  type Credential,
  type OrgHeader,
  type OwnKind,
  type Side,
  type Target,
} from './expected.js';
import { ROUTES, type Route } from './routes.js';

const HALF_HOUR_MS = 1_800_000;
const NOWHERE = '00000000-0000-4000-8000-000000000000';

/** Also tried from the other side, so that neither organization is the only one: all of them would take twice as long. */
const MIRRORED = ['a team key', 'an admin’s session', 'a member’s session'];

let test: TestControlPlane;
let credentials: Credential[];
let restore: () => void;

beforeAll(async () => {
  test = await TestControlPlane.start();
  const dead = await expiredSession();
  const [a, b] = [await makeSide(), await makeSide()];
  const mirrored = (await credentialsOf(b, a, dead)).filter(({ name }) => MIRRORED.includes(name));
  credentials = [...(await credentialsOf(a, b, dead)), ...mirrored];
  for (const agent of test.agents) agent.close();
  test.advance(60_000);
  // No worker runs after this: the expired keys are not ended, and must be refused all the same.
  test.clock.advance(HALF_HOUR_MS);
  proveAll();
  restore = test.snapshot();
});
afterAll(() => test.stop());

/** Everybody has just proven who it is. */
function proveAll(): void {
  const proven = query.updateTable('sessions').set({ proven_at: test.clock.now() });
  test.core.platform.store.transact((tx) => tx.run(proven));
}

async function expiredSession(): Promise<string> {
  const { api } = await test.renter(0);
  test.clock.advance(31 * DAY_MS);
  await test.signInOperator();
  return api.token ?? '';
}

async function makeSide(): Promise<Side> {
  const admin = await test.renter();
  const [member, third] = [await memberOf(admin), await memberOf(admin)];
  await addApp(test, third.api);
  await test.operator.post(`/v1/operator/users/${third.userId}/second-factor-removal`, { reason: 'lost' });
  const inOrg = (renter: Renter) => renter.api.in(admin.organizationId);
  const ofUser: Side['ofUser'] = new Map();
  for (const user of [admin, member]) {
    const key = await inOrg(user).post<{ key: { id: string } }>('/v1/api-keys', { name: 'own' });
    const added = { name: 'k', public_key: makePublicKey('-t', 'ed25519') };
    const sshKey = await user.api.post<{ id: string }>('/v1/ssh-keys', added);
    const session = await idleSession(test, user);
    const second_factor = (await addApp(test, user.api)).id;
    const own = { api_key: key.key.id, identity: linkedAccount(test, user), ssh_key: sshKey.id };
    ofUser.set(user.userId, { ...own, session, second_factor });
  }
  const template = await admin.api.post<{ id: string; hash_id: string }>('/v1/templates', {
    name: 'own',
    image: `team/${admin.organizationId}`,
  });
  const invite = await admin.api.post<{ invite: { id: string }; token: string }>('/v1/orgs/current/invites', {
    email: member.email.replace('@', '-guest@'),
  });
  const agent = await test.host({ gpus: 2 });
  const offer = await test.offer(agent);
  const request = { offer_id: offer, template_id: template.id, disk_gb: 10 };
  const { id: instance } = await admin.api.post<InstanceBody>('/v1/instances', request);
  await statusIs(admin.api, instance, 'running');
  await test.enrollmentToken();
  const tokens = await test.operator.get<{ items: { id: string; uses: number }[] }>('/v1/operator/enrollment-tokens');
  const { endpoint } = await admin.api.post<{ endpoint: { id: string } }>('/v1/webhook-endpoints', {
    url: 'https://hooks.example',
  });
  const delivery = await admin.api.post<{ id: string }>(`/v1/webhook-endpoints/${endpoint.id}/test`);
  const issuer = `issuer-${admin.userId.slice(0, 8)}`;
  await setCompany(test, `https://${issuer}.example`, { id: issuer, domains: [] });
  const things: Side['things'] = {
    api_key: ofUser.get(admin.userId)?.api_key ?? '',
    ssh_key: ofUser.get(admin.userId)?.ssh_key ?? '',
    identity: ofUser.get(admin.userId)?.identity ?? '',
    instance,
    invite: invite.invite.id,
    invite_of_address: invite.invite.id,
    invite_token: invite.token,
    issuer,
    machine: agent.hostId,
    member: third.userId,
    offer,
    organization: admin.organizationId,
    quarantine: await quarantined(agent),
    rollout: endedRollout(),
    session: ofUser.get(admin.userId)?.session ?? '',
    second_factor: ofUser.get(admin.userId)?.second_factor ?? '',
    template: template.id,
    template_hash: template.hash_id,
    system_template: await test.template(),
    webhook_delivery: delivery.id,
    webhook_endpoint: endpoint.id,
    unsubscribe_token: makeUnsubscribeToken(test.core.platform.encryption, third.userId, ['disks']),
    device_code: await typedDeviceCode(test, third),
    enrollment_token: tokens.items.find(({ uses }) => uses === 0)?.id ?? '',
  };
  return { admin, member, things, ofUser };
}

/** Makes a rollout that is over. */
function endedRollout(): string {
  const id = randomUUID();
  const over = { version: '9.9.9', started_at: 0, stopped_at: null, stop_reason: null, ended_at: 0, open: null };
  test.core.platform.store.transact((tx) => tx.run(insertRow('rollouts', { id, ...over })));
  return id;
}

async function quarantined(agent: TestControlPlane['lastAgent']): Promise<string> {
  agent.disconnect();
  const instanceId = randomUUID();
  agent.workloads.set(instanceId, {
    state: 'WORKLOAD_STATE_STOPPED',
    sequence: 1,
    sshPort: 0,
    gpuUuids: [],
    lines: [],
  });
  await agent.connect();
  const { items } = await test.operator.get<{ items: { id: string; instance_id: string }[] }>(
    '/v1/operator/quarantine',
  );
  return items.find((workload) => workload.instance_id === instanceId)?.id ?? '';
}

/** Makes a member that acts for this organization without a header, like everybody else here. */
async function memberOf(admin: Renter, role = 'member'): Promise<Renter> {
  const guest = await joined(test, admin, role);
  test.dissolve(guest);
  return guest;
}

async function credentialsOf(side: Side, other: Side, expiredSession: string): Promise<Credential[]> {
  const { admin, member } = side;
  const inOrg = (renter: Renter) => renter.api.in(admin.organizationId);
  const mint = async (by: Renter, kind: string, restrictions = {}) =>
    await inOrg(by).post<{ secret: string; key: { id: string } }>('/v1/api-keys', {
      name: kind,
      kind,
      ...restrictions,
    });
  const leaver = await memberOf(admin, 'admin');
  const [leaverPersonal, leaverTeam] = [await mint(leaver, 'personal'), await mint(leaver, 'team')];
  await leaver.api.delete(`/v1/me/organizations/${admin.organizationId}`);
  const revoked = await mint(admin, 'team');
  await admin.api.delete(`/v1/api-keys/${revoked.key.id}`);
  const expired = await mint(admin, 'team', { expires_at: new Date(test.clock.now() + HALF_HOUR_MS).toISOString() });
  const demoted = await memberOf(admin);
  const ofDemoted = await mint(demoted, 'personal');
  await admin.api.request('PATCH', `/v1/orgs/current/members/${demoted.userId}`, { role: 'viewer' });
  const [viewer, billing] = [await memberOf(admin, 'viewer'), await memberOf(admin, 'billing')];
  const of = (name: string, token: string | undefined, rest: Partial<Credential>): Credential => ({
    name,
    token,
    kind: 'key',
    role: 'member',
    side,
    other,
    userId: admin.userId,
    ...rest,
  });
  const operator = await memberOf(admin);
  test.makeOperator(operator.userId);
  return [
    of('no credential', undefined, { dead: true }),
    of('a malformed one', 'nonsense', { dead: true }),
    of('a revoked key', revoked.secret, { dead: true }),
    of('an expired session', expiredSession, { dead: true }),
    of('an expired key', expired.secret, { dead: true }),
    of('a personal key whose creator is a viewer now', ofDemoted.secret, { dead: true }),
    of('a personal key whose creator has left', leaverPersonal.secret, { dead: true }),
    of('a team key whose creator has left', leaverTeam.secret, {}),
    of('an admin’s personal key', (await mint(admin, 'personal')).secret, {}),
    of('a member’s personal key', (await mint(member, 'personal')).secret, { userId: member.userId }),
    of('a team key', (await mint(admin, 'team')).secret, {}),
    of('a read-only key', (await mint(admin, 'personal', { read_only: true })).secret, {
      role: 'viewer',
      onlyReads: true,
    }),
    of('a key for here', (await mint(admin, 'team', { allowed_addresses: ['127.0.0.0/8', '::1'] })).secret, {}),
    of('a key for another address', (await mint(admin, 'team', { allowed_addresses: ['192.0.2.0/24'] })).secret, {
      isForeign: true,
      onlyReads: true,
    }),
    of('a member’s session', member.api.token, { kind: 'session', userId: member.userId }),
    of('an admin’s session', admin.api.token, { kind: 'session', role: 'admin' }),
    of('an admin’s cookie with proof', admin.api.token, { kind: 'session', role: 'admin', cookie: 'with proof' }),
    of('a member’s cookie with proof', member.api.token, {
      kind: 'session',
      cookie: 'with proof',
      userId: member.userId,
    }),
    of('an operator’s cookie without proof', operator.api.token, {
      kind: 'session',
      role: 'operator',
      cookie: 'without proof',
      userId: operator.userId,
    }),
    of('a viewer’s session', viewer.api.token, {
      kind: 'session',
      role: 'viewer',
      userId: viewer.userId,
      onlyReads: true,
    }),
    of('a session of the role billing', billing.api.token, {
      kind: 'session',
      role: 'billing',
      userId: billing.userId,
    }),
    of('an operator’s session', operator.api.token, { kind: 'session', role: 'operator', userId: operator.userId }),
    of('a session of somebody without an organization', leaver.api.token, {
      kind: 'no_organization',
      userId: leaver.userId,
    }),
  ];
}

function idOf({ route, credential, target }: Cell): string {
  if (!route.object || target === 'unknown') return NOWHERE;
  const side = target === 'own' ? credential.side : credential.other;
  const own = side.ofUser.get(credential.userId);
  const { object } = route;
  if (target === 'own' && own && object in own) return own[object as OwnKind];
  return side.things[route.object];
}

function send(cell: Cell): Promise<Answer<{ code?: string } | null>> {
  const { route, credential, header } = cell;
  const [method = '', path = ''] = route.operation.split(' ');
  const organization = { absent: undefined, own: credential.side, other: credential.other }[header]?.admin
    .organizationId;
  const { cookie, token } = credential;
  const api: ApiClient = test.api.as(cookie ? undefined : token);
  const client = organization ? api.in(organization) : api;
  const headers = cookie ? { Cookie: `__Host-gpurent=${token}`, ...PROOFS[cookie] } : {};
  return client.request(method, path.replace('{id}', idOf(cell)), route.body, headers);
}

const PROOFS = {
  'with proof': { 'Sec-Fetch-Site': 'same-origin', 'X-Same-Origin': '1' },
  'without proof': { 'Sec-Fetch-Site': 'same-site', 'X-Same-Origin': '1' },
};

const REFUSALS = [
  '401 TOKEN_INVALID',
  '403 ADMIN_REQUIRED',
  '403 API_KEY_ADDRESS',
  '403 API_KEY_READ_ONLY',
  '403 COOKIE_REFUSED',
  '403 ORG_MISMATCH',
  '403 ROLE_NOT_ALLOWED',
  '403 SECOND_FACTOR_REQUIRED',
];

function actual({ route }: Cell, { status, body }: Answer<{ code?: string } | null>): string {
  const said = `${status} ${body?.code ?? ''}`.trim();
  const refuses = REFUSALS.includes(said) || status === 404 || status === 405 || status >= 500;
  return refuses && !(route.access === 'public' && status < 500 && status !== 404) ? said : 'passes';
}

/** What is tried of targets and headers by day. What is left out has the header of one of these and the target of another. */
const BY_DAY: readonly Pick<Cell, 'target' | 'header'>[] = [
  { target: 'own', header: 'absent' },
  { target: 'own', header: 'own' },
  { target: 'own', header: 'other' },
  { target: 'foreign', header: 'absent' },
  { target: 'foreign', header: 'other' },
  { target: 'unknown', header: 'absent' },
];
/** A dead credential is refused before anything else is looked at. */
const OF_DEAD = [BY_DAY[0], BY_DAY[4]];

const TARGETS: readonly Target[] = ['own', 'foreign', 'unknown'];
const HEADERS: readonly OrgHeader[] = ['absent', 'own', 'other'];
/** At night. */
const ALL = HEADERS.flatMap((header) => TARGETS.map((target) => ({ target, header })));

function cellsOf(route: Route): Cell[] {
  const tried = process.env['TEST_ALL_CELLS'] === undefined ? BY_DAY : ALL;
  return credentials.flatMap((credential) =>
    tried
      .filter((each) => tried === ALL || !credential.dead || OF_DEAD.includes(each))
      .filter(({ target }) => route.object || target === 'own')
      .map((each) => ({ route, credential, ...each })),
  );
}

const describeCell = ({ credential, target, header, route }: Cell) =>
  `${route.operation} with ${credential.name}${route.object ? ` on what is ${target}` : ''}, X-Org-Id ${header}`;

/** The rows that the control plane has written since its start, also those that it has undone. */
function changes(): number {
  const { connection } = test.core.platform.store as unknown as { connection: BetterSqlite3.Database };
  return (connection.prepare('SELECT total_changes() AS rows').get() as { rows: number }).rows;
}

const mustChangeNothing = ({ credential, route: { access } }: Cell) =>
  credential.onlyReads === true && access !== 'public' && (access !== 'account' || credential.kind === 'key');

/** An answer without what is never the same twice. */
function bytes({ status, headers, body }: Answer<unknown>): string {
  const kept = [...headers].filter(([name]) => !['date', 'x-request-id'].includes(name));
  return JSON.stringify([status, kept, { ...(body as object), request_id: '' }]);
}

/** What a suspended organization is refused; a deploy and a start only once everything before has been checked. */
const SUSPENDED = ['POST /v1/orgs/current/invites'];

describe('the authorization matrix', () => {
  let cells = 0;
  afterAll(() => {
    console.log(
      `authorization matrix: ${cells} cells over ${ROUTES.length} routes and ${credentials.length} credentials`,
    );
  });

  it('names every route that the server has, and no other', async () => {
    const { paths } = await fetchDocument(test.api.baseUrl);
    const served = Object.entries(paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method.toUpperCase()} ${path.replace(/\{[^}]+\}/, '{id}')}`),
    );
    expect(ROUTES.map(({ operation }) => operation).sort()).toEqual(served.sort());
  });

  it.each(ROUTES)('$operation: $access', async (route) => {
    const wrong: string[] = [];
    const missing = new Map<string, string>();
    for (const cell of cellsOf(route)) {
      const changesBefore = changes();
      const answer = await send(cell);
      cells += 1;
      if (mustChangeNothing(cell) && changes() > changesBefore)
        wrong.push(`${describeCell(cell)}: has written to the database`);
      const [wanted, got] = [expected(cell), actual(cell, answer)];
      if (wanted !== got) wrong.push(`${describeCell(cell)}: ${got}, not ${wanted}`);
      if (answer.status < 400 && !route.operation.startsWith('GET')) restore();
      const key = `${cell.credential.name} of ${cell.credential.side.admin.email}, ${cell.header}`;
      if (route.object && wanted.startsWith('404') && cell.target === 'foreign') missing.set(key, bytes(answer));
      if (cell.target === 'unknown' && missing.has(key) && missing.get(key) !== bytes(answer)) {
        wrong.push(`${describeCell(cell)}: a foreign object and an unknown one are told apart`);
      }
    }
    expect(wrong).toEqual([]);
  });

  it('of an organization that demands a second factor is the same, but closed to sessions without one', async () => {
    const side = credentials[0]?.side;
    if (!side) throw new Error('there is no organization');
    await side.admin.api.request('PUT', '/v1/orgs/current/second-factor', { required: true });
    const restoreDemanding = test.snapshot();
    const lacking = ['a viewer’s session', 'a session of the role billing', 'an operator’s session'];
    const others = ['an admin’s session', 'an admin’s cookie with proof', 'a team key', 'a read-only key'];
    const its = credentials.filter(({ side: own, name }) => own === side && [...lacking, ...others].includes(name));
    const wrong: string[] = [];
    for (const route of ROUTES)
      for (const credential of its) {
        const cell: Cell = { route, credential, target: 'own', header: 'absent' };
        const isClosed = lacking.includes(credential.name) && !['public', 'account', 'operator'].includes(route.access);
        const wanted = isClosed ? '403 SECOND_FACTOR_REQUIRED' : expected(cell);
        const answer = await send(cell);
        const got = actual(cell, answer);
        cells += 1;
        if (wanted !== got) wrong.push(`${describeCell(cell)}: ${got}, not ${wanted}`);
        if (answer.status < 400 && !route.operation.startsWith('GET')) restoreDemanding();
      }
    expect(its).toHaveLength(lacking.length + others.length);
    expect(wrong).toEqual([]);
    restore();
  });

  it('of a suspended organization is the same, but for what it is refused', async () => {
    const [side] = credentials.map((credential) => credential.side);
    await test.operator.post(`/v1/operator/organizations/${side?.admin.organizationId}/suspend`, { reason: 'abuse' });
    const restoreSuspended = test.snapshot();
    const names = ['an admin’s session', 'a member’s session', 'a team key'];
    const its = credentials.filter((credential) => credential.side === side && names.includes(credential.name));
    const wrong: string[] = [];
    for (const route of ROUTES.filter(({ access }) => access !== 'operator' && access !== 'public'))
      for (const credential of its) {
        const cell: Cell = { route, credential, target: 'own', header: 'absent' };
        const answer = await send(cell);
        cells += 1;
        const isRefused = answer.body?.code === 'ORGANIZATION_SUSPENDED';
        const mustBe = SUSPENDED.includes(route.operation) && expected(cell) === 'passes';
        if (isRefused !== mustBe || expected(cell) !== actual(cell, answer))
          wrong.push(`${describeCell(cell)}: ${answer.status} ${answer.body?.code}`);
        if (answer.status < 400 && !route.operation.startsWith('GET')) restoreSuspended();
      }
    expect(its).toHaveLength(3);
    expect(wrong).toEqual([]);
    restore();
  });
});
