import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { textOf, type Browser, type Shown } from '../harness/browser.js';
import { begin, browserAt, comeBack, returnUrl, setCompany } from '../harness/companies.js';
import { CompanyPeople, SESSION_HOURS } from '../harness/company-people.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import { LyingIssuer } from '../harness/lying-issuer.js';
import { addApp, nextCode } from '../harness/second-factors.js';

let test: TestControlPlane;
let issuer: LyingIssuer;
let people: CompanyPeople;
/** The organization of the company, with an admin. */
let acme: Renter;
let other: Renter;
let alice: Browser;
let restore: () => void;

beforeAll(async () => {
  test = await TestControlPlane.start();
  issuer = await LyingIssuer.start();
  people = new CompanyPeople(test, issuer);
  [acme, other] = [await test.renter(0), await test.renter(0)];
  await people.setUp(acme.organizationId);
  restore = test.snapshot();
});
beforeEach(async () => {
  await test.signInOperator();
  alice = await people.signIn('alice');
});
afterEach(() => {
  restore();
  issuer.repent();
});
afterAll(async () => {
  await test.stop();
  await issuer.stop();
});

const pathOf = ({ url }: Shown) => new URL(url).pathname + new URL(url).search;
const REFUSED = '/sign-in?done=company-refused';
const memberOf = ({ organizationId }: Renter, role = 'member') => ({ organization_id: organizationId, role });

async function userIdOf(browser: Browser): Promise<string> {
  return (await (await people.api(browser)).get<{ user: { id: string } }>('/v1/me')).user.id;
}

/** Makes a user a member of an organization, as an admin there does. */
async function invite({ api, organizationId }: Renter, browser: Browser, role = 'member'): Promise<void> {
  const invited = await people.api(browser);
  const { user } = await invited.get<{ user: { email: string } }>('/v1/me');
  const { token } = await api
    .in(organizationId)
    .post<{ token: string }>('/v1/orgs/current/invites', { email: user.email, role });
  await invited.post(`/v1/invites/${token}/accept`);
}

async function acts({
  api,
}: Renter): Promise<{ action: string; actor_kind: string; object: string; reason: string }[]> {
  return (await api.get<{ items: [] }>('/v1/audit-log?limit=20')).items;
}

const roleOf = async ({ api }: Renter, userId: string) => {
  const { items } = await api.get<{ items: { id: string; role: string }[] }>('/v1/orgs/current/members');
  return items.find(({ id }) => id === userId)?.role;
};

/** Whoever is a member has a personal key that works. */
async function keyOf(browser: Browser, organizationId: string): Promise<() => Promise<number>> {
  const api = (await people.api(browser)).in(organizationId);
  const { secret } = await api.post<{ secret: string }>('/v1/api-keys', { name: 'ci', kind: 'personal' });
  const status = async () => (await test.api.as(secret).request('GET', '/v1/instances')).status;
  expect(await status()).toBe(200);
  return status;
}

/** Everything of the company is as it was: the session, the membership, the key. */
async function expectStays(browser: Browser, key: () => Promise<number>): Promise<void> {
  expect(await people.status(browser)).toBe(200);
  expect(await people.memberships(browser)).toMatchObject([memberOf(acme)]);
  expect(await key()).toBe(200);
}

describe('whom the issuer refuses without a question', () => {
  it("loses the issuer's sessions, and leaves the organizations of its domains, and no others", async () => {
    await invite(other, alice);
    const [second, bob] = [await people.signIn('alice'), await people.signIn('bob')];
    const keys = [await keyOf(alice, acme.organizationId), await keyOf(alice, other.organizationId)];
    const userId = await userIdOf(alice);
    const shown = await people.refuse(alice);
    expect(pathOf(shown)).toBe(REFUSED);
    expect(textOf(shown.text)).toContain(
      'Your company has refused your account, so your sessions are ended and you have left its organizations.',
    );
    expect(await alice.cookies()).not.toHaveProperty('__Host-gpurent');
    expect([await people.status(second), await people.status(bob)]).toEqual([401, 200]);
    expect([await roleOf(acme, userId), await roleOf(other, userId)]).toEqual([undefined, 'member']);
    expect([await keys[0]?.(), await keys[1]?.()]).toEqual([401, 200]);
    expect(await acts(acme)).toContainEqual(
      expect.objectContaining({
        action: 'member.remove',
        actor_kind: 'system',
        object: `members/${userId}`,
        reason: "the company's sign-in has refused the account as unknown or disabled",
      }),
    );
  });

  it('keeps a session that a password or another company has opened', async () => {
    const elsewhere = await LyingIssuer.start();
    await setCompany(test, elsewhere.url, { id: 'other', domains: [{ domain: 'other.example' }], session_hours: 720 });
    elsewhere.lies = { sub: 'alice', email: 'alice@other.example' };
    const browser = browserAt(test);
    await comeBack(browser, elsewhere.signIn(await begin(alice, 'other', '?link=yes')));
    const linked = await comeBack(alice, elsewhere.signIn(await begin(alice, 'other', '?link=yes')));
    await alice.submit(linked, '/account/companies/link');
    await comeBack(browser, elsewhere.signIn(await begin(browser, 'other')));
    expect(await people.status(browser)).toBe(200);
    expect(pathOf(await people.refuse(alice))).toBe(REFUSED);
    expect(await people.status(browser)).toBe(200);
    expect(await people.memberships(browser)).toEqual([]);
    await elsewhere.stop();
  });

  it.each([
    ['AADSTS50057: The user account is disabled.', 'interaction_required'],
    ['AADSTS50034: The user account does not exist in the directory.', 'login_required'],
    ['AADSTS50105: The signed in user is not assigned to a role for the application.', 'invalid_grant'],
  ])('is also whom Microsoft Entra refuses with %s', async (error_description, error) => {
    expect(pathOf(await people.refuse(alice, error, { error_description }))).toBe(REFUSED);
    expect(await people.status(alice)).toBe(401);
  });

  it('is also who is refused once the code is exchanged', async () => {
    const key = await keyOf(alice, acme.organizationId);
    const next = await people.openLate(alice);
    issuer.intercept = (request, response) => {
      if (request.url !== '/token') return false;
      const body = { error: 'invalid_grant', error_description: 'AADSTS50057: The user account is disabled.' };
      response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify(body));
      return true;
    };
    expect(pathOf(await comeBack(alice, issuer.signIn(next)))).toBe(REFUSED);
    expect(await key()).toBe(401);
  });

  it.each([
    ['AADSTS500571: something else', 'login_required'],
    ['The user said: AADSTS50057', 'login_required'],
    ['AADSTS65001: The user has not consented', 'interaction_required'],
  ])('is nobody whom it answers with %s', async (error_description, error) => {
    const key = await keyOf(alice, acme.organizationId);
    expect(pathOf(await people.refuse(alice, error, { error_description }))).toBe('/account');
    await expectStays(alice, key);
  });

  it('can finish no sign-in that waits for its second factor', async () => {
    const app = await addApp(test, await people.api(alice));
    const [waiting, next] = [browserAt(test), await people.openLate(alice)];
    const asked = await comeBack(waiting, issuer.signIn(await begin(waiting)));
    expect(pathOf(asked)).toBe('/sign-in/second-factor');
    expect(pathOf(await comeBack(alice, issuer.refuse(next, 'access_denied')))).toBe(REFUSED);
    const done = await waiting.submit(asked, '/sign-in/second-factor', { code: nextCode(test, app) });
    expect(done.status).toBe(401);
    expect(await waiting.cookies()).not.toHaveProperty('__Host-gpurent');
  });

  it('joins the organization of its domain again at the next sign-in', async () => {
    const userId = await userIdOf(alice);
    const key = await keyOf(alice, acme.organizationId);
    await people.refuse(alice);
    expect(await roleOf(acme, userId)).toBeUndefined();
    await people.signIn('alice', alice);
    expect(await userIdOf(alice)).toBe(userId);
    expect(await people.memberships(alice)).toMatchObject([memberOf(acme)]);
    expect(await key()).toBe(401);
    expect((await acts(acme))[0]).toMatchObject({ action: 'member.join', object: `members/${userId}` });
    // Once: whom an admin removes then stays away.
    await acme.api.delete(`/v1/orgs/current/members/${userId}`);
    await people.signIn('alice', alice);
    expect(await people.memberships(alice)).toEqual([]);
  });

  it('does not join again where an admin has removed it before, or where the domain assigns nobody any more', async () => {
    const bob = await people.signIn('bob');
    await acme.api.delete(`/v1/orgs/current/members/${await userIdOf(bob)}`);
    expect(pathOf(await people.refuse(bob))).toBe(REFUSED);
    await people.signIn('bob', bob);
    expect(await people.memberships(bob)).toEqual([]);
    await people.signIn('alice', alice);
    await people.refuse(alice);
    await test.signInOperator();
    await people.setUp(other.organizationId);
    await people.signIn('alice', alice);
    expect(await people.memberships(alice)).toEqual([]);
  });

  it('stays a member as the last admin, whom operators then see until it signs in again', async () => {
    const userId = await userIdOf(alice);
    const { api } = acme;
    await api.request('PATCH', `/v1/orgs/current/members/${userId}`, { role: 'admin' });
    const key = await keyOf(alice, acme.organizationId);
    await api.request('DELETE', `/v1/me/organizations/${acme.organizationId}`);
    const second = await people.signIn('alice');
    expect(pathOf(await people.refuse(alice))).toBe(REFUSED);
    expect([await people.status(second), await key()]).toEqual([401, 200]);
    await test.signInOperator();
    const needs = async () => (await test.operator.get<{ needs: object[] }>('/v1/operator/overview')).needs;
    const named = { subject: `orgs/${acme.organizationId}`, organization_id: acme.organizationId };
    const message = 'alice@acme.example is its last admin';
    const items = [expect.objectContaining({ ...named, message }) as object];
    expect(await needs()).toContainEqual({ kind: 'admin_refused', count: 1, items });
    const listed = '/v1/operator/organizations?need=admin_refused';
    expect((await test.operator.get<{ items: object[] }>(listed)).items).toMatchObject([{ id: acme.organizationId }]);
    const metrics = async () =>
      /^gpurent_admins_refused \d+/m.exec(await (await fetch(`${test.url}/metrics`)).text())?.[0];
    expect(await metrics()).toBe('gpurent_admins_refused 1');
    await people.signIn('alice', alice);
    expect(await people.memberships(alice)).toMatchObject([memberOf(acme, 'admin')]);
    expect((await acts({ ...acme, api: await people.api(alice) }))[0]).toMatchObject({
      action: 'member.end_sessions',
      reason: "the company's sign-in has refused the account as unknown or disabled; the last admin stays a member",
    });
    expect(await needs()).not.toContainEqual(expect.objectContaining({ kind: 'admin_refused' }));
    expect(await metrics()).toBe('gpurent_admins_refused 0');
  });
});

describe('a refusal counts for nothing', () => {
  let key: () => Promise<number>;
  beforeEach(async () => {
    key = await keyOf(alice, acme.organizationId);
  });
  const NO = 'AADSTS50057: The user account is disabled.';

  it.each([
    ['access_denied', {}, 'The company has not signed you in.'],
    ['login_required', { error_description: NO }, 'The company does not know your account, has disabled it'],
  ])('in a sign-in that may ask the person: %s', async (error, changes, words) => {
    for (const parameters of ['', '?again=yes', '?link=yes']) {
      const shown = await comeBack(alice, issuer.refuse(await begin(alice, 'acme', parameters), error, changes));
      expect([shown.status, textOf(shown.text)]).toEqual([403, expect.stringContaining(words)]);
      await expectStays(alice, key);
    }
  });

  it('without a state, with a forged one, and with that of another person', async () => {
    const mallory = await people.signIn('mallory');
    const stolen = new URL(issuer.refuse(await people.openLate(mallory), 'access_denied'));
    expect(await people.open(alice)).toBeDefined();
    const forged = new URL(stolen);
    forged.searchParams.set('state', 'A'.repeat(43));
    const bare = `${returnUrl(test)}?error=access_denied`;
    for (const address of [bare, forged.href, stolen.href]) {
      expect((await comeBack(alice, address)).status).toBe(400);
      await expectStays(alice, key);
    }
    expect(await people.status(mallory)).toBe(200);
  });

  it('that names another issuer', async () => {
    const iss = 'http://127.0.0.1:1';
    expect(pathOf(await people.refuse(alice, 'access_denied', { iss }))).toBe('/account');
    await expectStays(alice, key);
  });

  it('for whoever has signed in with the same browser meanwhile, and for the one before', async () => {
    const no = issuer.refuse(await people.openLate(alice), 'access_denied');
    const second = await people.signIn('alice');
    await people.signIn('bob', alice);
    expect(pathOf(await comeBack(alice, no))).toBe('/account');
    expect(await people.memberships(alice)).toMatchObject([memberOf(acme)]);
    await expectStays(second, key);
  });

  it('in a browser that has another session by now, also while the one before lasts', async () => {
    const no = issuer.refuse(await people.openLate(alice), 'access_denied');
    const { ['__Host-gpurent']: before = '' } = await alice.cookies();
    const { ['__Host-gpurent']: ofBob = '' } = await (await people.signIn('bob')).cookies();
    await alice.jar.setCookie(`__Host-gpurent=${ofBob}; Path=/; Secure`, alice.home);
    expect(pathOf(await comeBack(alice, no))).toBe('/account');
    expect(await people.memberships(alice)).toMatchObject([memberOf(acme)]);
    await alice.jar.setCookie(`__Host-gpurent=${before}; Path=/; Secure`, alice.home);
    await expectStays(alice, key);
  });

  it('once the person has signed out', async () => {
    const second = await people.signIn('alice');
    const no = issuer.refuse(await people.openLate(alice), 'access_denied');
    const page = await alice.open('/account');
    await alice.submit(page, '/sign-out');
    await comeBack(alice, no);
    await expectStays(second, key);
  });

  it('a second time', async () => {
    const no = issuer.refuse(await people.openLate(alice), 'access_denied');
    await comeBack(alice, no);
    await people.signIn('alice', alice);
    expect((await comeBack(alice, no)).status).toBe(400);
    expect(await people.memberships(alice)).toMatchObject([memberOf(acme)]);
  });

  it('of an issuer whose address the operator has changed meanwhile', async () => {
    const no = new URL(issuer.refuse(await people.openLate(alice), 'access_denied'));
    no.searchParams.delete('iss');
    const another = await LyingIssuer.start();
    another.metadata = { authorization_response_iss_parameter_supported: false };
    await people.setUp(acme.organizationId, { issuer: another.url });
    expect(pathOf(await comeBack(alice, no.href))).toBe('/account');
    await expectStays(alice, key);
    await another.stop();
  });
});

it('a company that renews no sessions keeps those of whom it refuses until their end', async () => {
  await people.setUp(acme.organizationId, { renews_sessions: false });
  const browser = await people.signIn('alice');
  test.clock.advance((SESSION_HOURS - 1) * 3_600_000);
  expect(await people.open(browser)).toBeUndefined();
  expect(await people.status(browser)).toBe(200);
});
