import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiClient } from '../harness/api-client.js';
import { makeUnsubscribeToken } from '../../control-plane/services/mail/unsubscribe.js';
import { query } from '../../control-plane/store/sql.js';
import { ACTS } from '../../control-plane/domain/act.js';
import { NOT_RECORDED, RECORDED_ELSEWHERE } from '../contract/recorded.js';
import { ROUTES } from '../contract/routes.js';
import { linkedAccount, setCompany } from '../harness/companies.js';
import { World } from '../contract/world.js';
import { failEachStatement, type TestedRequest } from '../harness/failing-statements.js';
import { makePublicKey } from '../harness/keys.js';
import { addApp } from '../harness/second-factors.js';

let world: World;

beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.stop());

/** Makes what a request is about, and answers the request. */
type UseCase = () => Promise<TestedRequest> | TestedRequest;

interface ActRow {
  organization_id: string;
  number: number;
  actor_kind: string;
  action: string;
  address: string | null;
}

/** The acts that are recorded, of all organizations. */
const acts = (): ActRow[] =>
  world.test.core.platform.store.transact((tx) => tx.all(query.selectFrom('organization_acts').selectAll()));
const keyOf = ({ organization_id, number }: ActRow) => `${organization_id} ${number}`;
/** Which route was seen to record what. */
const recorded = new Map<string, string[]>();

const admin = () => world.admin.api;
const operator = () => world.test.operator;
const of = (api: ApiClient, operation: string, body?: unknown): TestedRequest => {
  const [method = '', path = ''] = operation.split(' ');
  return { api, method, path, body };
};
const email = () => `somebody-${randomUUID()}@example.com`;
const anAccount = () => ({ email: email(), password: 'a fine password', name: 'Somebody' });
const made = async (api: ApiClient, path: string, body: object) => (await api.post<{ id: string }>(path, body)).id;
const PRICES = { price_per_hour_micro: 1_000_000, storage_price_per_gb_hour_micro: 100 };
const NO_CAPS = { burn_per_hour_micro: null, day_micro: null, month_micro: null };
const SCHEDULE = { time_zone: 'UTC', entries: [{ action: 'stop', days: ['monday'], at: '08:00' }] };
const ISSUER = { name: 'Acme', issuer: 'https://acme.example', client_id: 'c', client_secret: 's' };
const IN_2040 = { starts_at: '2040-01-01T00:00:00.000Z', ends_at: '2040-01-02T00:00:00.000Z' };

/** An instance whose host says nothing more, so that nothing happens behind the test. */
async function instance(status: 'running' | 'stopped'): Promise<string> {
  const { agent, body } = await world.host();
  const { id } = await world[status](body);
  agent.automatic = false;
  return id;
}

async function quarantined(): Promise<{ id: string; offerId: string }> {
  const { agent, body } = await world.host({ gpus: 1 });
  const machine = await operator().get<{ gpus: { uuid: string }[] }>(`/v1/operator/machines/${agent.hostId}`);
  const observation = { state: 'WORKLOAD_STATE_STOPPED' };
  const gpuUuids = machine.gpus.map(({ uuid }) => uuid);
  await agent.claim({ instances: [{ instanceId: randomUUID(), sequence: 1, gpuUuids, observation }] });
  const { items } = await operator().get<{ items: { id: string; machine_id: string }[] }>('/v1/operator/quarantine');
  return { id: items.find(({ machine_id }) => machine_id === agent.hostId)?.id ?? '', offerId: body.offer_id };
}

async function webhookEndpoint(): Promise<string> {
  const { api } = world.admin;
  const { items } = await api.get<{ items: { id: string }[] }>('/v1/webhook-endpoints');
  for (const { id } of items) await api.delete(`/v1/webhook-endpoints/${id}`);
  const made = { url: 'https://hooks.example' };
  return (await api.post<{ endpoint: { id: string } }>('/v1/webhook-endpoints', made)).endpoint.id;
}

async function awayHost(): Promise<string> {
  const { agent } = await world.host();
  agent.close();
  world.test.advance(31_000);
  return agent.hostId;
}

/** A user with a second factor. */
async function withApp() {
  const renter = await world.test.renter();
  await addApp(world.test, renter.api);
  return renter;
}

/** Asks for the removal of a user's factors, and returns its path. */
async function removalOf(userId: string): Promise<string> {
  const path = `/v1/operator/users/${userId}/second-factor-removal`;
  await operator().post(path, { reason: 'lost' });
  return path;
}

const USE_CASES: Readonly<Record<string, UseCase>> = {
  'sign up': () => of(world.test.api, 'POST /v1/auth/sign-up', anAccount()),
  'sign up by invitation': async () => {
    const account = anAccount();
    const { token } = await admin().post<{ token: string }>('/v1/orgs/current/invites', { email: account.email });
    return of(world.test.api, 'POST /v1/auth/sign-up', { ...account, invite_token: token });
  },
  'sign in': async () => {
    const account = anAccount();
    await world.test.api.post('/v1/auth/sign-up', account);
    return of(world.test.api, 'POST /v1/auth/sign-in', { email: account.email, password: account.password });
  },
  'choose mails': async () => of((await world.test.renter()).api, 'PATCH /v1/me/mail', { money: false, disks: false }),
  'end mails': async () => {
    const { userId } = await world.test.renter();
    const token = makeUnsubscribeToken(world.test.core.platform.encryption, userId, ['low_balance', 'disks']);
    return of(world.test.api, `POST /v1/mail/unsubscribe/${token}`);
  },
  'sign out': async () => of((await world.test.renter()).api, 'POST /v1/auth/sign-out'),
  'change the password': async () => {
    const change = { current_password: 'a renter password', new_password: 'another password' };
    return of((await world.test.renter()).api, 'POST /v1/auth/password', change);
  },
  'change it and revoke the keys': async () => {
    const { api } = await world.test.renter();
    await api.post('/v1/api-keys', { name: 'k' });
    const change = { current_password: 'a renter password', new_password: 'another password' };
    return of(api, 'POST /v1/auth/password', { ...change, revoke_api_keys: true });
  },
  'make a link to a new password': async () =>
    of(operator(), `POST /v1/operator/users/${(await world.test.renter()).userId}/password-reset`, { reason: 'x' }),
  'set a new password by it': async () => {
    const { api, userId } = await world.test.renter();
    await api.post('/v1/api-keys', { name: 'k' });
    const { token } = await operator().post<{ token: string }>(`/v1/operator/users/${userId}/password-reset`, {
      reason: 'x',
    });
    const change = { token, new_password: 'another password', revoke_api_keys: true };
    return of(world.test.api, 'POST /v1/auth/password-reset/confirm', change);
  },
  'end a session': async () => {
    const { api, email } = await world.test.renter();
    await world.test.api.post('/v1/auth/sign-in', { email, password: 'a renter password' });
    const { items } = await api.get<{ items: { id: string; is_current: boolean }[] }>('/v1/auth/sessions');
    return of(api, `DELETE /v1/auth/sessions/${items.find(({ is_current }) => !is_current)?.id}`);
  },
  'unlink an account at a company': async () => {
    const renter = await world.test.renter();
    return of(renter.api, `DELETE /v1/me/identities/${linkedAccount(world.test, renter)}`);
  },
  'set an issuer': () => {
    const domains = [{ domain: 'acme.example', organization_id: world.admin.organizationId }];
    return of(operator(), 'PUT /v1/operator/issuers/acme', { ...ISSUER, domains });
  },
  'change an issuer': async () => {
    await setCompany(world.test, ISSUER.issuer, { id: 'acme' });
    const domains = [{ domain: 'acme.example' }, { domain: 'acme.test' }];
    return of(operator(), 'PATCH /v1/operator/issuers/acme', { name: 'New', client_secret: 'new', domains });
  },
  'remove an issuer': async () => {
    await setCompany(world.test, ISSUER.issuer, { id: 'acme' });
    return of(operator(), 'DELETE /v1/operator/issuers/acme');
  },
  'end all other sessions': async () => {
    const { api, email } = await world.test.renter();
    await world.test.api.post('/v1/auth/sign-in', { email, password: 'a renter password' });
    return of(api, 'DELETE /v1/auth/sessions');
  },
  'prove who uses a session': async () =>
    of((await world.test.renter()).api, 'POST /v1/me/proof', { password: 'a renter password' }),
  'begin to add an authenticator app': async () =>
    of((await world.test.renter()).api, 'POST /v1/me/second-factors/totp'),
  'remove the last second factor': async () => {
    const { api } = await world.test.renter();
    return of(api, `DELETE /v1/me/second-factors/${(await addApp(world.test, api)).id}`);
  },
  'make new recovery codes': async () => {
    return of((await withApp()).api, 'POST /v1/me/recovery-codes');
  },
  'demand a second factor': async () => {
    const { api } = await withApp();
    return of(api, 'PUT /v1/orgs/current/second-factor', { required: true });
  },
  'ask for the removal of second factors': async () => {
    const { userId } = await withApp();
    return of(operator(), `POST /v1/operator/users/${userId}/second-factor-removal`, { reason: 'lost' });
  },
  'cancel it as an operator': async () => of(operator(), `DELETE ${await removalOf((await withApp()).userId)}`),
  'cancel it as the user': async () => {
    const user = await withApp();
    await removalOf(user.userId);
    return of(user.api, 'DELETE /v1/me/second-factor-removal');
  },
  'make an organization': async () => of((await world.test.renter()).api, 'POST /v1/orgs', { name: 'second' }),
  'rename it': () => of(admin(), 'PATCH /v1/orgs/current', { name: randomUUID() }),
  invite: () => of(admin(), 'POST /v1/orgs/current/invites', { email: email() }),
  'withdraw an invitation': async () => {
    const { invite } = await admin().post<{ invite: { id: string } }>('/v1/orgs/current/invites', { email: email() });
    return of(admin(), `DELETE /v1/orgs/current/invites/${invite.id}`);
  },
  'accept an invitation': async () => {
    const guest = await world.test.renter();
    const { token } = await admin().post<{ token: string }>('/v1/orgs/current/invites', { email: guest.email });
    return of(guest.api, `POST /v1/invites/${token}/accept`);
  },
  'accept an invitation without its token': async () => {
    const guest = await world.test.renter();
    const user = query.updateTable('users').set({ email_verified_at: 1 }).where('id', '=', guest.userId);
    world.test.core.platform.store.transact((tx) => tx.run(user));
    const invitation = { email: guest.email };
    const { invite } = await admin().post<{ invite: { id: string } }>('/v1/orgs/current/invites', invitation);
    return of(guest.api, `POST /v1/me/invites/${invite.id}/accept`);
  },
  'change a role': async () =>
    of(admin(), `PATCH /v1/orgs/current/members/${(await world.join()).userId}`, { role: 'admin' }),
  'remove a member, with their keys': async () => {
    const member = await world.join();
    await world.key('personal', member);
    return of(admin(), `DELETE /v1/orgs/current/members/${member.userId}`);
  },
  leave: async () => {
    const member = await world.join();
    await world.key('personal', member);
    return of(member.api, `DELETE /v1/me/organizations/${world.admin.organizationId}`);
  },
  'make a viewer of a member with a key, where there is an instance': async () => {
    const member = await world.join();
    await world.key('personal', member);
    await instance('running');
    return of(admin(), `PATCH /v1/orgs/current/members/${member.userId}`, { role: 'viewer' });
  },
  'make an API key with caps': () =>
    of(admin(), 'POST /v1/api-keys', { name: 'key', spend_caps: { day_micro: 1 }, allowed_addresses: ['192.0.2.1'] }),
  'make an API key': () => of(admin(), 'POST /v1/api-keys', { name: 'key' }),
  'revoke an API key': async () => of(admin(), `DELETE /v1/api-keys/${(await world.key()).key.id}`),
  'add an SSH key': () => of(admin(), 'POST /v1/ssh-keys', { name: 'k', public_key: makePublicKey('-t', 'ed25519') }),
  'delete an SSH key': async () => of(admin(), `DELETE /v1/ssh-keys/${await world.sshKey(world.admin)}`),
  'make a template': () =>
    of(admin(), 'POST /v1/templates', { name: 't', image: 'i', env: [{ key: 'A', value: 'b' }] }),
  'change a template': async () =>
    of(admin(), `PATCH /v1/templates/${await made(admin(), '/v1/templates', { name: 't', image: 'i' })}`, {
      name: 'u',
    }),
  'deactivate a template': async () =>
    of(admin(), `DELETE /v1/templates/${await made(admin(), '/v1/templates', { name: 't', image: 'i' })}`),
  'duplicate a template': () => of(admin(), `POST /v1/templates/${world.templateId}/duplicate`),
  deploy: async () => {
    const { body } = await world.host({ automatic: false });
    return of(admin(), 'POST /v1/instances', body);
  },
  stop: async () => of(admin(), `POST /v1/instances/${await instance('running')}/stop`),
  'replace access': async () => {
    const key = { name: 'k', public_key: makePublicKey('-t', 'ed25519') };
    const ssh_key_id = await made(admin(), '/v1/ssh-keys', key);
    const { agent, body } = await world.host();
    const { id } = await world.running({ ...body, ssh_key_id });
    agent.automatic = false;
    return of(admin(), `POST /v1/instances/${id}/access`, { ssh_key_id });
  },
  'give it a schedule': async () => of(admin(), `PUT /v1/instances/${await instance('stopped')}/schedule`, SCHEDULE),
  'take its schedule away': async () => {
    const id = await instance('stopped');
    await admin().request('PUT', `/v1/instances/${id}/schedule`, SCHEDULE);
    return of(admin(), `DELETE /v1/instances/${id}/schedule`);
  },
  destroy: async () => {
    const id = await instance('stopped');
    await admin().request('PUT', `/v1/instances/${id}/schedule`, SCHEDULE);
    return of(admin(), `DELETE /v1/instances/${id}`);
  },
  'stop for an operator': async () =>
    of(operator(), `POST /v1/operator/instances/${await instance('running')}/stop`, { reason: 'abuse' }),
  'destroy for an operator': async () =>
    of(operator(), `DELETE /v1/operator/instances/${await instance('running')}`, { reason: 'abuse' }),
  'remove a user, with keys and memberships': async () => {
    const member = await world.join('admin');
    await world.key('team', member);
    await world.sshKey(member);
    return of(operator(), `DELETE /v1/operator/users/${member.userId}`);
  },
  'make a webhook endpoint': () => of(admin(), 'POST /v1/webhook-endpoints', { url: 'https://hooks.example' }),
  'change a webhook endpoint': async () =>
    of(admin(), `PATCH /v1/webhook-endpoints/${await webhookEndpoint()}`, { url: 'https://b.example', types: null }),
  'switch a webhook endpoint off': async () =>
    of(admin(), `PATCH /v1/webhook-endpoints/${await webhookEndpoint()}`, { enabled: false }),
  'rotate the secret of a webhook endpoint': async () =>
    of(admin(), `POST /v1/webhook-endpoints/${await webhookEndpoint()}/rotate-secret`),
  // The last one: nothing goes on behind the others.
  'delete a webhook endpoint': async () => of(admin(), `DELETE /v1/webhook-endpoints/${await webhookEndpoint()}`),
  'change an instance': async () => of(admin(), `PATCH /v1/instances/${await instance('stopped')}`, { label: 'x' }),
  'cap what an organization spends': () => of(admin(), 'PUT /v1/orgs/current/spend-caps', NO_CAPS),
  'cap what an API key spends': async () =>
    of(admin(), `PUT /v1/api-keys/${(await world.key()).key.id}/spend-caps`, NO_CAPS),
  'suspend an organization, which stops what runs': async () => {
    const renter = await world.test.renter();
    const { agent, body } = await world.host();
    await world.running(body, renter.api);
    agent.automatic = false;
    return of(operator(), `POST /v1/operator/organizations/${renter.organizationId}/suspend`, { reason: 'abuse' });
  },
  'restore an organization': async () => {
    const { organizationId } = await world.test.renter();
    await operator().post(`/v1/operator/organizations/${organizationId}/suspend`, { reason: 'abuse' });
    return of(operator(), `POST /v1/operator/organizations/${organizationId}/restore`, { reason: 'settled' });
  },
  'end the sessions of a user, and revoke the keys': async () => {
    const member = await world.join();
    await world.key('personal', member);
    const body = { reason: 'stolen laptop', revoke_api_keys: true };
    return of(operator(), `POST /v1/operator/users/${member.userId}/end-sessions`, body);
  },
  'make a user an operator': async () =>
    of(operator(), `PUT /v1/operator/users/${(await world.test.renter()).userId}/operator`, { reason: 'a colleague' }),
  'make an operator an ordinary user': async () => {
    const { userId } = await world.test.renter();
    world.test.makeOperator(userId);
    return of(operator(), `DELETE /v1/operator/users/${userId}/operator`, { reason: 'has left' });
  },
  'tell the renters of a machine something': async () => {
    const { agent, body } = await world.host();
    await world.running(body);
    agent.automatic = false;
    return of(operator(), `POST /v1/operator/machines/${agent.hostId}/notice`, { message: 'a fan is broken' });
  },
  'make an enrollment token': () => of(operator(), 'POST /v1/operator/enrollment-tokens', {}),
  'revoke an enrollment token': async () =>
    of(
      operator(),
      `DELETE /v1/operator/enrollment-tokens/${await made(operator(), '/v1/operator/enrollment-tokens', {})}`,
    ),
  cordon: async () => of(operator(), `POST /v1/operator/machines/${(await world.host()).agent.hostId}/cordon`),
  'plan maintenance': async () =>
    of(operator(), `PUT /v1/operator/machines/${(await world.host()).agent.hostId}/maintenance`, IN_2040),
  'declare a machine lost': async () => of(operator(), `POST /v1/operator/machines/${await awayHost()}/lost`),
  'remove a machine': async () => of(operator(), `DELETE /v1/operator/machines/${await awayHost()}`),
  'make an offer': async () => {
    const machine_id = (await world.host()).agent.hostId;
    return of(operator(), 'POST /v1/operator/offers', { machine_id, num_gpus: 1, ...PRICES });
  },
  'reprice an offer': async () =>
    of(operator(), `PATCH /v1/operator/offers/${(await world.host()).body.offer_id}`, { price_per_hour_micro: 7 }),
  'withdraw an offer': async () => of(operator(), `DELETE /v1/operator/offers/${(await world.host()).body.offer_id}`),
  'make a system template': () => of(operator(), 'POST /v1/operator/templates', { name: 's', image: 'i' }),
  'grant credit': () =>
    of(operator(), `POST /v1/operator/organizations/${world.stranger.organizationId}/credits`, {
      amount_micro: 5,
      reason: 'test',
    }),
  'open a dispute, which releases what is stopped': async () => {
    const renter = await world.test.renter();
    const { agent, body } = await world.host();
    await world.stopped(body, renter.api);
    agent.automatic = false;
    return of(operator(), `POST /v1/operator/organizations/${renter.organizationId}/dispute`);
  },
  'close a dispute': async () => {
    const { organizationId } = await world.test.renter();
    await operator().post(`/v1/operator/organizations/${organizationId}/dispute`);
    return of(operator(), `DELETE /v1/operator/organizations/${organizationId}/dispute`);
  },
  'remove from quarantine': async () =>
    of(operator(), `POST /v1/operator/quarantine/${(await quarantined()).id}/remove`),
  'adopt from quarantine': async () => {
    const { id, offerId } = await quarantined();
    const organization_id = world.admin.organizationId;
    const adoption = { organization_id, template_id: world.templateId, offer_id: offerId, disk_gb: 10 };
    return of(operator(), `POST /v1/operator/quarantine/${id}/adopt`, adoption);
  },
  'start a rollout': () => {
    world.test.core.platform.hostReleaseVersion = '9.9.9';
    return of(operator(), 'POST /v1/operator/rollouts');
  },
  'stop a rollout': async () => {
    world.test.core.platform.hostReleaseVersion = '9.9.9';
    const { items } = await operator().get<{ items: { id: string }[] }>('/v1/operator/rollouts');
    // At most one is open: the one that was started above.
    const { id } = items[0] ?? (await operator().post<{ id: string }>('/v1/operator/rollouts'));
    return of(operator(), `POST /v1/operator/rollouts/${id}/stop`);
  },
  'confirm the clock': () => {
    world.test.advance(1_000);
    world.test.clock.step(120_000);
    world.test.advance(1_000);
    return of(operator(), 'POST /v1/operator/clock/confirm');
  },
};

/** Returns the route of a request, as the matrix names it. */
function routeOf(method: string, path: string): string {
  const matches = ({ operation }: (typeof ROUTES)[number]) =>
    new RegExp(`^${operation.replace('{id}', '[^/ ]+')}$`).test(`${method} ${path}`);
  return ROUTES.find(matches)?.operation ?? `${method} ${path}`;
}

describe('whatever statement of a use case fails, nothing of it has happened, and it can be done again:', () => {
  it.each(Object.entries(USE_CASES))('%s', async (_name, prepare) => {
    const request = await prepare();
    const known = new Set(acts().map(keyOf));
    let done: ActRow[] = [];
    const onDone = () => {
      done = acts().filter((row) => !known.has(keyOf(row)));
    };
    await failEachStatement(world.test, request, { onDone });
    // Workers act from no address.
    recorded.set(
      routeOf(request.method, request.path),
      done.filter(({ address }) => address !== null).map(({ action }) => action),
    );
    expect(done.filter(({ action }) => !(ACTS as readonly string[]).includes(action))).toEqual([]);
  });
});

it('each route that changes something of an organization records it', () => {
  const changing = ROUTES.map(({ operation }) => operation).filter((operation) => !operation.startsWith('GET '));
  const exempt = [...Object.keys(NOT_RECORDED), ...RECORDED_ELSEWHERE];
  expect(changing.filter((operation) => !exempt.includes(operation) && !recorded.get(operation)?.length)).toEqual([]);
  expect(exempt.filter((operation) => recorded.get(operation)?.length)).toEqual([]);
  expect(exempt.filter((operation) => !changing.includes(operation))).toEqual([]);
});
