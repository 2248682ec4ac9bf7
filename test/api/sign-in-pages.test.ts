import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Browser, hiddenFieldsOf, textOf, type Shown } from '../harness/browser.js';
import { query } from '../../control-plane/store/sql.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import { fetchDocument } from '../harness/openapi-conformance.js';

const PASSWORD = 'a renter password';
const PAGES = [
  '/sign-in',
  '/sign-up',
  '/account',
  '/account/password',
  '/forgot-password',
  '/reset-password?token=rst_1',
  '/confirm-address?token=new_1',
  '/device',
  '/device/approve',
  '/account/second-factors',
  '/account/second-factors/totp',
  '/accept-invite?token=inv_1',
];
const COMPANY_PAGES = ['/sign-in/company', '/account/companies', '/sign-in/company/nothing/start'];

let test: TestControlPlane;
let renter: Renter;
let browser: Browser;
beforeAll(async () => {
  test = await TestControlPlane.start();
});
afterAll(() => test.stop());
beforeEach(async () => {
  renter = await test.renter(0);
  browser = newBrowser();
});

function newBrowser(): Browser {
  const { port } = new URL(test.url);
  return new Browser(Number(port), `http://localhost:${port}`);
}

async function signIn(where = '/sign-in', { email } = renter, with_ = browser): Promise<Shown> {
  return with_.submit(await with_.open(where), '/sign-in', { email, password: PASSWORD });
}

const pathOf = ({ url }: Shown) => new URL(url).pathname + new URL(url).search;
/** What a person is told is wrong. */
const problemOf = ({ text }: Shown) => textOf(/<div class="problem" role="alert">.*?<\/div>/s.exec(text)?.[0] ?? '');

/** The contrast of two colours, by WCAG 2. */
function contrast(one: string, other: string): number {
  const light = [one, other].map((colour) => {
    const digits = colour.length === 4 ? colour.replace(/[0-9a-f]/g, '$&$&') : colour;
    const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
      const part = parseInt(digits.slice(at, at + 2), 16) / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  });
  return (Math.max(...light) + 0.05) / (Math.min(...light) + 0.05);
}

describe('signing in', () => {
  it('hands the session to the browser alone, and shows the account', async () => {
    const page = await signIn();
    expect([page.status, pathOf(page)]).toEqual([200, '/account']);
    expect(textOf(page.text)).toContain(`You are signed in as Renter, ${renter.email}.`);
    const [cookie] = (await browser.jar.getCookies(browser.home)).filter(({ key }) => key === '__Host-gpurent');
    expect(cookie).toMatchObject({ secure: true, httpOnly: true, sameSite: 'lax', path: '/', hostOnly: true });
    expect(page.text).not.toContain(cookie?.value);
  });

  it('leads back to the page that asked for it', async () => {
    const asked = await browser.open('/account/password');
    expect(pathOf(asked)).toBe('/sign-in?return_to=%2Faccount%2Fpassword');
    const page = await browser.submit(asked, '/sign-in', { email: renter.email, password: PASSWORD });
    expect(pathOf(page)).toBe('/account/password');
  });

  it('that fails keeps what was typed, but the password, and says no more than the API', async () => {
    const page = await browser.open('/sign-in?return_to=%2Faccount%2Fpassword');
    const wrong = 'not the password of anybody';
    const [known, unknown] = [
      await browser.submit(page, '/sign-in', { email: renter.email, password: wrong }),
      await browser.submit(page, '/sign-in', { email: 'nobody@example.com', password: wrong }),
    ];
    expect([known.status, unknown.status]).toEqual([401, 401]);
    expect(problemOf(known)).toBe('The e-mail address or the password is wrong.');
    expect(unknown.text.replace('nobody@example.com', renter.email)).toBe(known.text);
    expect(known.text).not.toContain(wrong);
    expect(hiddenFieldsOf(known, '/sign-in')).toMatchObject({
      email: renter.email,
      return_to: '/account/password',
    });
    const again = await browser.submit(known, '/sign-in', { password: PASSWORD });
    expect(pathOf(again)).toBe('/account/password');
  });

  it('says at each field what is wrong with it', async () => {
    const page = await browser.open('/sign-in');
    const wrong = await browser.submit(page, '/sign-in', { email: 'no address' });
    expect(wrong.status).toBe(422);
    expect(wrong.text).toMatch(/<input\s[^>]*id="email"[^>]*aria-invalid="true"[^>]*autofocus[^>]*value="no address"/s);
    expect(wrong.text).toMatch(/id="email-wrong">\s*Give an e-mail address/s);
    expect(wrong.text).toMatch(/<input\s[^>]*id="password"[^>]*aria-describedby="password-wrong"/s);
    expect(problemOf(wrong)).toContain('Give your password.');
  });

  it('again ends the session that the browser had', async () => {
    await signIn();
    const before = (await browser.cookies())['__Host-gpurent'];
    const other = await test.renter(0);
    expect(textOf((await signIn('/sign-in', other)).text)).toContain(other.email);
    const after = (await browser.cookies())['__Host-gpurent'];
    expect(after).not.toBe(before);
    expect((await test.api.as(before).request('GET', '/v1/me')).status).toBe(401);
    expect((await test.api.as(after).request('GET', '/v1/me')).status).toBe(200);
  });

  it('is limited like at the API, and together with it', async () => {
    const limited = await TestControlPlane.start({ rateLimits: { attemptsPerAccount: 4 } });
    const { email } = await limited.renter(0);
    const { port } = new URL(limited.url);
    const visitor = new Browser(Number(port), `http://localhost:${port}`);
    const page = await visitor.open('/sign-in');
    const wrong = { email, password: 'a wrong password' };
    for (let count = 0; count < 2; count++) {
      expect((await visitor.submit(page, '/sign-in', wrong)).status).toBe(401);
      expect((await limited.api.request('POST', '/v1/auth/sign-in', wrong)).status).toBe(401);
    }
    const refused = await visitor.submit(page, '/sign-in', { email, password: PASSWORD });
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, expect.stringMatching(/^\d+$/)]);
    expect(problemOf(refused)).toMatch(/^Too many attempts at the password of this account; try again in \d+ s\.$/);
    expect(hiddenFieldsOf(refused, '/sign-in')).toMatchObject({ email });
    await limited.stop();
  });
});

describe('signing up', () => {
  const typed = (email: string) => ({ email, name: 'Ann', password: 'correct horse battery' });

  it('opens a session, and leads back', async () => {
    const page = await browser.open('/sign-up?return_to=%2Faccount%2Fpassword');
    const shown = await browser.submit(page, '/sign-up', typed('ann@example.com'));
    expect([shown.status, pathOf(shown)]).toEqual([200, '/account/password']);
    expect(textOf((await browser.open('/account')).text)).toContain('Ann, ann@example.com');
  });

  it('says what is wrong, and keeps the rest', async () => {
    const page = await browser.open('/sign-up');
    const taken = await browser.submit(page, '/sign-up', typed(renter.email));
    expect([taken.status, problemOf(taken)]).toEqual([
      409,
      'An account with this e-mail address exists; sign in instead.',
    ]);
    const short = await browser.submit(page, '/sign-up', { ...typed('bob@example.com'), password: 'short' });
    expect([short.status, problemOf(short)]).toEqual([422, 'Give a password of 12 to 256 characters.']);
    expect(hiddenFieldsOf(short, '/sign-up')).toMatchObject({ name: 'Ann', email: 'bob@example.com' });
    expect(short.text).not.toContain('value="short"');
  });

  it('where it is by invitation asks for one', async () => {
    const closed = await TestControlPlane.start();
    const admin = await closed.renter(0);
    await closed.restart({ signUp: 'invitation' });
    const { port } = new URL(closed.url);
    const guest = new Browser(Number(port), `http://localhost:${port}`);
    expect((await guest.open('/sign-in')).text).not.toContain('/sign-up');
    const page = await guest.open('/sign-up');
    const refused = await guest.submit(page, '/sign-up', typed('guest@example.com'));
    expect([refused.status, problemOf(refused)]).toEqual([403, 'New accounts need an invitation: give its code.']);
    const { token } = await admin.api.post<{ token: string }>('/v1/orgs/current/invites', {
      email: 'guest@example.com',
    });
    const joined = await guest.submit(refused, '/sign-up', { ...typed('guest@example.com'), invite_token: token });
    expect(textOf(joined.text)).toContain("Renter's organization (member)");
    await closed.stop();
  });
});

describe('an invitation', () => {
  const inviteOf = async (email: string) =>
    (await renter.api.post<{ token: string }>('/v1/orgs/current/invites', { email, role: 'admin' })).token;

  it('is accepted by somebody who signs in for it', async () => {
    const guest = await test.renter(0);
    const token = await inviteOf(guest.email);
    const first = await browser.open(`/accept-invite?token=${token}`);
    const link = /href="(\/sign-in[^"]*)"/.exec(first.text)?.[1]?.replaceAll('&amp;', '&') ?? '';
    const page = await signIn(link, guest);
    expect(pathOf(page)).toBe(`/accept-invite?token=${token}`);
    expect(textOf(page.text)).toContain("organization Renter's organization as an admin");
    const joined = await browser.submit(page, '/accept-invite');
    expect(pathOf(joined)).toBe('/account?done=joined');
    expect(textOf(joined.text)).toContain('You are a member of the organization now.');
    const again = await browser.open(`/accept-invite?token=${token}`);
    expect([again.status, problemOf(again)]).toEqual([
      404,
      'You have no such invitation: it may be accepted already, withdrawn or expired.',
    ]);
  });

  it('is accepted by somebody who has no account yet', async () => {
    const token = await inviteOf('new@example.com');
    const first = await browser.open(`/accept-invite?token=${token}`);
    const link = /href="(\/sign-up[^"]*)"/.exec(first.text)?.[1]?.replaceAll('&amp;', '&') ?? '';
    const form = await browser.open(link);
    const typed = { email: 'new@example.com', name: 'New', password: 'correct horse battery' };
    expect(textOf((await browser.submit(form, '/sign-up', typed)).text)).toContain("Renter's organization (admin)");
  });

  it('without its mail is found by the account with its address', async () => {
    const [guest, stranger] = [await test.renter(0), await test.renter(0)];
    await inviteOf(guest.email);
    const confirmed = query.updateTable('users').set({ email_verified_at: 1 }).where('id', '=', guest.userId);
    test.core.platform.store.transact((tx) => tx.run(confirmed));
    const page = await signIn('/sign-in', guest);
    expect(textOf(page.text)).toContain("To the organization Renter's organization, as admin");
    const form = { ...hiddenFieldsOf(page, '/account/invites/join') };
    const { invite_id = '' } = form;
    const other = newBrowser();
    const theirs = hiddenFieldsOf(await signIn('/sign-in', stranger, other), '/sign-out');
    const stolen = { method: 'POST', from: other.home, form: { ...theirs, invite_id } };
    expect((await other.open('/account/invites/join', stolen)).status).toBe(404);
    const joined = await browser.submit(page, '/account/invites/join');
    expect(pathOf(joined)).toBe('/account?done=joined');
    expect(textOf(joined.text)).not.toContain('Invitations');
  });

  it('is nobody else’s', async () => {
    const [guest, thief] = [await test.renter(0), await test.renter(0)];
    const token = await inviteOf(guest.email);
    await signIn('/sign-in', thief);
    const shown = await browser.open(`/accept-invite?token=${token}`);
    expect(shown.status).toBe(404);
    expect(shown.text).not.toContain(guest.email);
    const form = hiddenFieldsOf(await browser.open('/account'), '/sign-out');
    const sent = { method: 'POST', from: browser.home, form: { ...form, token } };
    expect((await browser.open('/accept-invite', sent)).status).toBe(404);
  });
});

describe('the account', () => {
  it('shows where the user is signed in, and ends sessions', async () => {
    const phone = newBrowser();
    phone.userAgent =
      'Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36';
    await signIn('/sign-in', renter, phone);
    const page = await signIn();
    const words = textOf(page.text);
    expect(words).toContain('Firefox on Linux , from 127.0.0.1');
    expect(words).toContain('Chrome on Android , from 127.0.0.1');
    expect(words).toContain('A Node.js program');
    const { items } = await renter.api.get<{ items: { id: string; device: string }[] }>('/v1/auth/sessions');
    const session_id = items.find(({ device }) => device === 'Chrome on Android')?.id ?? '';
    const ended = await browser.submit(page, '/account/sessions/end', { session_id });
    expect(textOf(ended.text)).toContain('The session is ended.');
    expect(pathOf(await phone.open('/account'))).toContain('/sign-in');
    const again = await browser.submit(page, '/account/sessions/end', { session_id });
    expect([again.status, problemOf(again)]).toEqual([404, 'This session has ended already.']);
    const others = await browser.submit(page, '/account/sessions/end-others');
    expect(textOf(others.text)).toContain('All your other sessions are ended.');
    expect((await renter.api.request('GET', '/v1/me')).status).toBe(401);
  });

  it('ends the session of this browser, which forgets it', async () => {
    const page = await signIn();
    const token = (await browser.cookies())['__Host-gpurent'];
    const shown = await browser.submit(page, '/sign-out');
    expect(pathOf(shown)).toBe('/sign-in?done=signed-out');
    expect(textOf(shown.text)).toContain('You are signed out.');
    expect(await browser.cookies()).not.toHaveProperty('__Host-gpurent');
    expect((await test.api.as(token).request('GET', '/v1/me')).status).toBe(401);
    expect(pathOf(await browser.open('/account'))).toBe('/sign-in?return_to=%2Faccount');
  });

  it('asks about keys when the password changes', async () => {
    await renter.api.post('/v1/api-keys', { name: 'k' });
    await signIn();
    const page = await browser.open('/account/password');
    expect(textOf(page.text)).toContain('You have 1, in all organizations');
    const typed = { current_password: PASSWORD, new_password: 'a new renter password' };
    const wrong = await browser.submit(page, '/account/password', {
      ...typed,
      current_password: 'wrong',
      revoke_api_keys: 'yes',
    });
    expect([wrong.status, problemOf(wrong)]).toEqual([401, 'The current password is wrong.']);
    expect(wrong.text).toMatch(/name="revoke_api_keys"[^>]*checked/s);
    expect(wrong.text).not.toContain('a new renter password');
    const done = await browser.submit(wrong, '/account/password', { ...typed, revoke_api_keys: 'yes' });
    expect(textOf(done.text)).toContain('your API keys are revoked');
    expect((await renter.api.request('GET', '/v1/me')).status).toBe(401);
    expect(textOf((await browser.open('/account/password')).text)).not.toContain('API keys that I have created');
  });

  it('of somebody whose session has ended is shown after the next sign-in', async () => {
    await signIn();
    await renter.api.request('DELETE', '/v1/auth/sessions');
    const shown = await browser.open('/account');
    expect(pathOf(shown)).toBe('/sign-in?return_to=%2Faccount');
    expect(await browser.cookies()).not.toHaveProperty('__Host-gpurent');
  });
});

describe('every page', () => {
  it('can be read by people who hear it, on a phone, and in the dark', async () => {
    await signIn();
    const needsNoInvite = PAGES.filter((each) => !each.startsWith('/accept-invite'));
    for (const path of [...needsNoInvite, ...COMPANY_PAGES.slice(0, 2)]) {
      const { text, headers } = await browser.open(path);
      expect(headers['content-type']).toBe('text/html; charset=utf-8');
      expect(text).toMatch(/^<!doctype html>\s*<html lang="en">/);
      expect(text).toContain('name="viewport" content="width=device-width, initial-scale=1"');
      expect(text).toMatch(/<title>[^<]+ - gpurent<\/title>/);
      expect(text.match(/<h1>/g)).toHaveLength(1);
      const ids = [...text.matchAll(/\bid="([^"]+)"/g)].map(([, id]) => id);
      expect(new Set(ids).size, path).toBe(ids.length);
      for (const [, attributes = ''] of text.matchAll(/<input\s([^>]*)>/gs)) {
        if (/\bhidden\b/.test(attributes)) continue;
        const id = /\bid="([^"]+)"/.exec(attributes)?.[1] ?? '';
        expect(text, `${path} ${id}`).toContain(`<label for="${id}">`);
      }
    }
  });

  it('has no script, no embedding, no cache, and tells its address to nobody', async () => {
    await signIn();
    for (const path of [...PAGES, ...COMPANY_PAGES, '/sign-in/nothing']) {
      const { text, headers, status } = await browser.open(path);
      if (status === 404 && !path.startsWith('/accept-invite')) continue;
      const policy = String(headers['content-security-policy']);
      expect(policy).toMatch(
        /^default-src 'none'; style-src 'sha256-[^']+'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/,
      );
      expect(headers).toMatchObject({
        'x-frame-options': 'DENY',
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
        'referrer-policy': 'same-origin',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
      });
      expect(text).not.toMatch(/<script|\son\w+=|\sstyle="|javascript:/i);
    }
  });

  it('shows its style, which the policy allows by its hash', async () => {
    const { text, headers } = await browser.open('/sign-in');
    const style = /<style>(.*?)<\/style>/s.exec(text)?.[1] ?? '';
    const hash = createHash('sha256').update(style).digest('base64');
    expect(headers['content-security-policy']).toContain(`'sha256-${hash}'`);
    expect(style).toContain('color-scheme:light dark');
  });

  it('has colours that people with weak eyes can tell apart, by day and in the dark', async () => {
    const { text } = await browser.open('/sign-in');
    const palettes = [...text.matchAll(/:root\{([^}]*--text[^}]*)\}/g)].map(([, colours = '']) => colours);
    expect(palettes).toHaveLength(2);
    for (const palette of palettes) {
      const named = (name: string) => new RegExp(`--${name}:(#[0-9a-f]{3,6})`).exec(palette)?.[1] ?? '';
      for (const [front, back, least] of [
        ['text', 'page', 7],
        ['bad', 'page', 4.5],
        ['link', 'page', 4.5],
        ['on-link', 'link', 4.5],
        ['line', 'page', 3],
      ] as const)
        expect(contrast(named(front), named(back)), `${front} on ${back}`).toBeGreaterThan(least);
    }
  });

  it('is no part of the API', async () => {
    const { paths } = await fetchDocument(test.url);
    expect(Object.keys(paths).filter((path) => !/^\/(v1\/|healthz|readyz|metrics)/.test(path))).toEqual([]);
  });
});
