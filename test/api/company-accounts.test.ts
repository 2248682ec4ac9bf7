import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { query } from '../../control-plane/store/sql.js';
import type { ApiClient } from '../harness/api-client.js';
import { textOf, type Browser, type Shown } from '../harness/browser.js';
import { begin, browserAt, comeBack, returnUrl, setCompany } from '../harness/companies.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { TestIssuer, type Person } from '../harness/issuer.js';
import { makePublicKey } from '../harness/keys.js';
import { addApp } from '../harness/second-factors.js';

const PASSWORD = 'a renter password';
const WHY = { reason: 'lost the phone' };

let test: TestControlPlane;
let issuer: TestIssuer;
let renter: Renter;
let browser: Browser;
let restore: () => void;

beforeAll(async () => {
  test = await TestControlPlane.start();
  issuer = await TestIssuer.start([returnUrl(test)]);
  await setCompany(test, issuer.url, { domains: [{ domain: 'example.com' }] });
  renter = await test.renter(0);
  restore = test.snapshot();
});
beforeEach(() => {
  browser = browserAt(test);
});
afterEach(() => restore());
afterAll(async () => {
  await test.stop();
  await issuer.stop();
});

const pathOf = ({ url }: Shown) => new URL(url).pathname + new URL(url).search;
const problemOf = ({ text }: Shown) => textOf(/<div class="problem" role="alert">.*?<\/div>/s.exec(text)?.[0] ?? '');
const personOf = ({ email }: { email: string }): Person => ({ sub: `sub of ${email}`, email, email_verified: true });
const linkIn = ({ text }: Shown, words: string) =>
  new RegExp(`href="([^"]*)"[^>]*>${words}`).exec(text)?.[1]?.replaceAll('&amp;', '&') ?? '';

async function signInAtCompany(person: Person, visitor = browser, parameters = ''): Promise<Shown> {
  return comeBack(visitor, await issuer.signIn(await begin(visitor, 'acme', parameters), person));
}

async function signIn({ email }: { email: string }, visitor = browser, from = '/sign-in'): Promise<Shown> {
  return visitor.submit(await visitor.open(from), '/sign-in', { email, password: PASSWORD });
}

async function apiOf(visitor = browser): Promise<ApiClient> {
  return test.api.as((await visitor.cookies())['__Host-gpurent']);
}

interface Me {
  user: { id: string; email: string };
  memberships: { organization_id: string; name: string }[];
}
const whoIs = async (visitor = browser) => (await apiOf(visitor)).get<Me>('/v1/me');

function verify({ userId }: Renter): void {
  const its = query.updateTable('users').set({ email_verified_at: 1 }).where('id', '=', userId);
  test.core.platform.store.transact((tx) => tx.run(its));
}

/** Links the renter's account by its own sign-in. */
async function linked(visitor = browser): Promise<void> {
  const known = await signInAtCompany(personOf(renter), visitor);
  const page = await signIn(renter, visitor, linkIn(known, 'Sign in to this account'));
  await visitor.submit(page, '/account/companies/link');
}

describe('an account that exists', () => {
  it('is linked after its own sign-in, and then found by the company', async () => {
    verify(renter);
    const known = await signInAtCompany(personOf(renter));
    expect(pathOf(known)).toMatch(/^\/sign-in\/company\/known\?token=[0-9a-f]{32}$/);
    expect(await browser.cookies()).not.toHaveProperty('__Host-gpurent');
    const page = await signIn(renter, browser, linkIn(known, 'Sign in to this account'));
    expect(textOf(page.text)).toContain(`Whoever signs in at Acme as ${renter.email} will be signed in here`);
    expect(textOf((await browser.open('/account/companies')).text)).toContain('No account at a company is linked');
    const done = await browser.submit(page, '/account/companies/link');
    expect(pathOf(done)).toBe('/account/companies?done=company-linked');
    expect(textOf(done.text)).toContain(`${renter.email} at Acme.`);
    const other = browserAt(test);
    expect(pathOf(await signInAtCompany(personOf(renter), other))).toBe('/account');
    expect((await whoIs(other)).user.id).toBe(renter.userId);
  });

  it('is not taken over by what a company says', async () => {
    verify(renter);
    const before = test.dump();
    const known = await signInAtCompany(personOf(renter));
    expect(textOf(known.text)).toContain('If you cannot sign in to it, ask the operator');
    expect(known.text).not.toContain('/sign-in/company/claim');
    const token = new URL(known.url).searchParams.get('token') ?? '';
    const forged = { form_token: await formTokenOf(), token };
    const claimed = await browser.open('/sign-in/company/claim', { method: 'POST', from: browser.home, form: forged });
    expect([claimed.status, problemOf(claimed)]).toEqual([403, expect.stringContaining('This account is in use')]);
    expect(test.dump()).toEqual(before);
    expect((await renter.api.request('GET', '/v1/me')).status).toBe(200);
  });

  it('is linked neither by another browser, nor to another account, nor twice', async () => {
    const known = await signInAtCompany(personOf(renter));
    const link = linkIn(known, 'Sign in to this account');
    const page = new URL(link, browser.home).searchParams.get('return_to') ?? '';
    const stranger = browserAt(test);
    expect((await signIn(renter, stranger, link)).status).toBe(400);
    const another = await test.renter(0);
    const shown = await signIn(another, browser, link);
    const refused = await browser.submit(shown, '/account/companies/link');
    expect([refused.status, problemOf(refused)]).toEqual([403, expect.stringContaining('is for another account')]);
    await signIn(renter);
    await browser.submit(await browser.open(page), '/account/companies/link');
    expect((await browser.open(page)).status).toBe(400);
  });

  it('is linked within ten minutes', async () => {
    const known = await signInAtCompany(personOf(renter));
    test.clock.advance(600_000);
    expect((await signIn(renter, browser, linkIn(known, 'Sign in to this account'))).status).toBe(400);
  });

  it('links an account with another address from its own page', async () => {
    await signIn(renter);
    const page = await browser.open('/account/companies');
    expect(linkIn(page, 'Link an account at Acme')).toBe('/sign-in/company/acme/start?link=yes');
    const person = { sub: 'work', email: 'work@example.com', email_verified: true };
    const ask = await signInAtCompany(person, browser, '?link=yes');
    expect(textOf(ask.text)).toContain(
      `signs in at Acme as work@example.com will be signed in here as ${renter.email}`,
    );
    await browser.submit(ask, '/account/companies/link');
    const other = browserAt(test);
    await signInAtCompany(person, other);
    expect((await whoIs(other)).user.id).toBe(renter.userId);
    expect(pathOf(await signInAtCompany(person, browser, '?link=yes'))).toBe('/account/companies?done=company-linked');
  });

  it('gets no account at a company that another user has', async () => {
    await linked();
    const [another, visitor] = [await test.renter(0), browserAt(test)];
    await signIn(another, visitor);
    const shown = await signInAtCompany(personOf(renter), visitor, '?link=yes');
    expect([shown.status, problemOf(shown)]).toEqual([
      409,
      expect.stringContaining("linked to another user's account"),
    ]);
    expect((await whoIs(visitor)).user.id).toBe(another.userId);
  });

  it.each([
    ['changed the issuer', true, { issuer: 'https://other.example' }],
    ['taken the domain away', true, { domains: [] }],
    ['ceased to accept addresses that are not verified', undefined, { domains: [{ domain: 'example.com' }] }],
  ])('is not linked after the operator has %s', async (_what, email_verified, change) => {
    const patch = (body: object) => test.operator.request('PATCH', '/v1/operator/issuers/acme', body);
    await patch({ domains: [{ domain: 'example.com', accept_unverified: true }] });
    const known = await signInAtCompany({ ...personOf(renter), email_verified } as Person);
    const page = await signIn(renter, browser, linkIn(known, 'Sign in to this account'));
    await patch(change);
    expect((await browser.submit(page, '/account/companies/link')).status).toBe(400);
  });

  it('has a confirmed address once it is linked, so that nobody claims it who gets the address later', async () => {
    await linked();
    const known = await signInAtCompany({ ...personOf(renter), sub: 'the next one' }, browserAt(test));
    expect(pathOf(known)).toContain('/sign-in/company/known');
    expect(known.text).not.toContain('/sign-in/company/claim');
  });
});

/** The proof of the forms of a visitor who is not signed in. */
async function formTokenOf(visitor = browser): Promise<string> {
  const { text } = await visitor.open('/sign-in');
  return /name="form_token" value="([0-9a-f]+)"/.exec(text)?.[1] ?? '';
}

describe('an account whose address nobody has confirmed', () => {
  const claim = async (known: Shown) => browser.submit(known, '/sign-in/company/claim');

  it('is given to the person of the company without anything that its maker knows', async () => {
    const attacker = renter;
    const { secret: personal } = await attacker.api.post<{ secret: string }>('/v1/api-keys', { name: 'k' });
    const { secret: team } = await attacker.api.post<{ secret: string }>('/v1/api-keys', { name: 't', kind: 'team' });
    await attacker.api.post('/v1/me/proof', { password: PASSWORD });
    await addApp(test, attacker.api);
    await attacker.api.post('/v1/ssh-keys', { name: 'k', public_key: makePublicKey('-t', 'ed25519') });
    const second = await test.renter(0);
    const { token } = await attacker.api.post<{ token: string }>('/v1/orgs/current/invites', {
      email: second.email,
      role: 'admin',
    });
    await second.api.post(`/v1/invites/${token}/accept`);
    const reset = await test.operator.post<{ token: string }>(
      `/v1/operator/users/${attacker.userId}/password-reset`,
      WHY,
    );

    const known = await signInAtCompany(personOf(attacker));
    expect(textOf(known.text)).toContain('Nobody has ever confirmed the address of this account');
    expect(pathOf(await claim(known))).toBe('/account');

    const victim = await whoIs();
    expect(victim.user).toMatchObject({ id: attacker.userId, email: attacker.email });
    expect(victim.memberships.map(({ organization_id }) => organization_id)).not.toContain(attacker.organizationId);
    expect(victim.memberships).toHaveLength(1);
    for (const credential of [attacker.api.token, personal, team])
      expect((await test.api.as(credential).request('GET', '/v1/instances')).status).toBe(401);
    const again = await test.api.request('POST', '/v1/auth/sign-in', { email: attacker.email, password: PASSWORD });
    expect(again.status).toBe(401);
    const confirm = { token: reset.token, new_password: 'another fine password' };
    expect((await test.api.request('POST', '/v1/auth/password-reset/confirm', confirm)).status).toBe(404);
    for (const list of ['/v1/ssh-keys', '/v1/me/second-factors'])
      expect((await (await apiOf()).get<{ items: unknown[] }>(list)).items).toEqual([]);
    expect((await second.api.in(attacker.organizationId).request('GET', '/v1/orgs/current')).status).toBe(200);
  });

  it('loses what its maker has linked', async () => {
    await signIn(renter);
    const evil = { sub: 'evil', email: 'evil@example.com', email_verified: true };
    await browser.submit(await signInAtCompany(evil, browser, '?link=yes'), '/account/companies/link');
    browser = browserAt(test);
    await claim(await signInAtCompany(personOf(renter)));
    const thief = browserAt(test);
    await signInAtCompany(evil, thief);
    expect((await whoIs(thief)).user.id).not.toBe(renter.userId);
  });

  it('is not given away with money: its organization would be lost', async () => {
    test.setBalance(renter.organizationId, 1);
    const known = await signInAtCompany(personOf(renter));
    const before = test.dump();
    const refused = await claim(known);
    expect([refused.status, problemOf(refused)]).toEqual([
      409,
      expect.stringContaining('which has money or instances'),
    ]);
    expect(test.dump()).toEqual(before);
  });

  it('is not given away with instances: nobody could stop them', async () => {
    test.setBalance(renter.organizationId, 100_000_000);
    const agent = await test.host();
    const deploy = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
    const { id } = await renter.api.post<{ id: string }>('/v1/instances', deploy);
    await statusIs(renter.api, id, 'running');
    agent.close();
    test.setBalance(renter.organizationId, 0);
    const refused = await claim(await signInAtCompany(personOf(renter)));
    expect([refused.status, problemOf(refused)]).toEqual([
      409,
      expect.stringContaining('which has money or instances'),
    ]);
    expect((await renter.api.request('GET', '/v1/me')).status).toBe(200);
  });

  it('of an operator is linked only by its own sign-in', async () => {
    const known = await signInAtCompany(personOf({ email: 'operator@example.com' }));
    expect(known.text).not.toContain('/sign-in/company/claim');
    const token = new URL(known.url).searchParams.get('token') ?? '';
    const form = { form_token: await formTokenOf(), token };
    expect((await browser.open('/sign-in/company/claim', { method: 'POST', from: browser.home, form })).status).toBe(
      403,
    );
    expect((await test.operator.request('GET', '/v1/operator/users')).status).toBe(200);
  });

  it('is given only in the browser of which the company has said so, and once', async () => {
    const known = await signInAtCompany(personOf(renter));
    const thief = browserAt(test);
    await begin(thief);
    expect((await thief.open(pathOf(known))).status).toBe(400);
    await claim(known);
    const form = { form_token: await formTokenOf(), token: new URL(known.url).searchParams.get('token') ?? '' };
    expect((await browser.open('/sign-in/company/claim', { method: 'POST', from: browser.home, form })).status).toBe(
      400,
    );
  });

  it('is not there any more for who claims it too late', async () => {
    const known = await signInAtCompany(personOf(renter));
    verify(renter);
    expect((await claim(known)).status).toBe(403);
  });
});

describe('passwords that are switched off for a domain', () => {
  const OFF = { domains: [{ domain: 'example.com', passwords_off: true }] };
  const passwordSignIn = (email: string, password = PASSWORD) =>
    test.api.request<{ code: string }>('POST', '/v1/auth/sign-in', { email, password });

  it('are refused only once they are right', async () => {
    await setCompany(test, issuer.url, OFF);
    expect(await passwordSignIn(renter.email)).toMatchObject({ status: 403, body: { code: 'PASSWORD_OFF' } });
    const [wrong, unknown] = [
      await passwordSignIn(renter.email, 'wrong'),
      await passwordSignIn('nobody@example.com', 'wrong'),
    ];
    expect([wrong.status, unknown.status]).toEqual([401, 401]);
    expect({ ...wrong.body, request_id: '' }).toEqual({ ...unknown.body, request_id: '' });
    const page = await signIn(renter);
    expect([page.status, problemOf(page)]).toEqual([
      403,
      'Your company has switched passwords off: sign in with your company.',
    ]);
  });

  it('link an account once more, together with the company', async () => {
    await setCompany(test, issuer.url, OFF);
    const known = await signInAtCompany(personOf(renter));
    const link = linkIn(known, 'Sign in to this account');
    expect((await signIn(renter, browserAt(test), link)).status).toBe(403);
    const page = await signIn(renter, browser, link);
    expect(pathOf(page)).toMatch(/^\/account\/companies\/link/);
    await browser.submit(page, '/account/companies/link');
    expect((await passwordSignIn(renter.email)).status).toBe(403);
    expect((await signIn(renter, browserAt(test), link)).status).toBe(403);
  });

  it('stay for operators, who could lock themselves out', async () => {
    await setCompany(test, issuer.url, OFF);
    expect((await passwordSignIn('operator@example.com', 'operator password')).status).toBe(200);
  });

  it('are neither set nor changed, nor used for a new account', async () => {
    const { token } = await test.operator.post<{ token: string }>(
      `/v1/operator/users/${renter.userId}/password-reset`,
      WHY,
    );
    await setCompany(test, issuer.url, OFF);
    const before = test.dump();
    const off = { status: 403, body: { code: 'PASSWORD_OFF' } };
    const new_password = 'another fine password';
    expect(await test.api.request('POST', '/v1/auth/password-reset/confirm', { token, new_password })).toMatchObject(
      off,
    );
    const make = `/v1/operator/users/${renter.userId}/password-reset`;
    expect(await test.operator.request('POST', make, WHY)).toMatchObject(off);
    const change = { current_password: PASSWORD, new_password };
    expect(await renter.api.request('POST', '/v1/auth/password', change)).toMatchObject(off);
    for (const email of ['new@example.com', renter.email]) {
      const account = { email, password: PASSWORD, name: 'New' };
      expect(await test.api.request('POST', '/v1/auth/sign-up', account)).toMatchObject(off);
    }
    expect(test.dump()).toEqual(before);
  });

  it('prove nothing to a session that is still open', async () => {
    await setCompany(test, issuer.url, OFF);
    const prove = (password: string) => renter.api.request('POST', '/v1/me/proof', { password });
    expect(await prove(PASSWORD)).toMatchObject({ status: 403, body: { code: 'PASSWORD_OFF' } });
    expect(await prove('a wrong password')).toMatchObject({ status: 401, body: { code: 'INVALID_CREDENTIALS' } });
    test.clock.advance(3_600_000);
    const begun = await renter.api.request('POST', '/v1/me/second-factors/totp');
    expect(begun).toMatchObject({ status: 403, body: { code: 'PROOF_REQUIRED' } });
  });

  it('count again once the issuer is removed', async () => {
    await setCompany(test, issuer.url, OFF);
    await test.operator.delete('/v1/operator/issuers/acme');
    expect((await passwordSignIn(renter.email)).status).toBe(200);
  });
});

describe('a user without a password', () => {
  it('is no other than one with another password, or none, for who guesses', async () => {
    await signInAtCompany(personOf({ email: 'alice@example.com' }));
    for (const password of ['x', 'scrypt$2$1$1$AA==$AA==']) {
      const body = { email: 'alice@example.com', password };
      expect(await test.api.request('POST', '/v1/auth/sign-in', body)).toMatchObject({
        status: 401,
        body: { code: 'INVALID_CREDENTIALS' },
      });
      const change = { current_password: password, new_password: 'another fine password' };
      expect((await (await apiOf()).request('POST', '/v1/auth/password', change)).status).toBe(401);
    }
  });

  it('keeps the last linked account', async () => {
    await signInAtCompany(personOf({ email: 'alice@example.com' }));
    const api = await apiOf();
    const { items } = await api.get<{ items: { id: string; issuer_id: string; email: string }[] }>('/v1/me/identities');
    expect(items).toMatchObject([
      { issuer_id: 'acme', issuer_name: 'Acme', issuer: issuer.url, email: 'alice@example.com' },
    ]);
    const path = `/v1/me/identities/${items[0]?.id}`;
    expect(await api.request('DELETE', path)).toMatchObject({ status: 409, body: { code: 'LAST_SIGN_IN' } });
    const page = await browser.open('/account/companies');
    const refused = await browser.submit(page, '/account/companies/unlink');
    expect([refused.status, problemOf(refused)]).toEqual([
      409,
      'This is your only way to sign in. Link another account first.',
    ]);
    const second = { sub: 'second', email: 'alice.second@example.com', email_verified: true };
    await browser.submit(await signInAtCompany(second, browser, '?link=yes'), '/account/companies/link');
    expect((await api.request('DELETE', path)).status).toBe(204);
    expect((await api.request('DELETE', path)).status).toBe(404);
  });

  it('who is removed frees the account at the company', async () => {
    await signInAtCompany(personOf({ email: 'alice@example.com' }));
    const { user } = await whoIs();
    await test.operator.delete(`/v1/operator/users/${user.id}`);
    await signInAtCompany(personOf({ email: 'alice@example.com' }));
    expect((await whoIs()).user.id).not.toBe(user.id);
  });
});

describe('linked accounts', () => {
  it('are unlinked by who has a password', async () => {
    await linked();
    const page = await browser.open('/account/companies');
    const done = await browser.submit(page, '/account/companies/unlink');
    expect(textOf(done.text)).toContain('The account at the company is not linked any more.');
    const known = await signInAtCompany(personOf(renter), browserAt(test));
    expect(pathOf(known)).toContain('/sign-in/company/known');
  });

  it('stay when the issuer is removed, and count again when it is added again', async () => {
    await linked();
    await test.operator.delete('/v1/operator/issuers/acme');
    const { items } = await renter.api.get<{ items: object[] }>('/v1/me/identities');
    expect(items).toMatchObject([{ issuer_id: null, issuer_name: null, issuer: issuer.url }]);
    expect(textOf((await browser.open('/account/companies')).text)).toContain('which is not set up any more');
    expect((await browser.open('/sign-in/company/acme/start')).status).toBe(404);
    await setCompany(test, issuer.url, { domains: [] });
    const other = browserAt(test);
    await signInAtCompany(personOf(renter), other);
    expect((await whoIs(other)).user.id).toBe(renter.userId);
  });

  it('are twenty at most', async () => {
    await signIn(renter);
    for (let count = 0; count < 20; count++) {
      const person = { sub: `${count}`, email: `p${count}@example.com`, email_verified: true };
      await browser.submit(await signInAtCompany(person, browser, '?link=yes'), '/account/companies/link');
    }
    const ask = await signInAtCompany(
      { sub: '20', email: 'p20@example.com', email_verified: true },
      browser,
      '?link=yes',
    );
    expect((await browser.submit(ask, '/account/companies/link')).status).toBe(409);
  });
});
