import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { query } from '../../control-plane/store/sql.js';
import { Browser, exchange, hiddenFieldsOf, textOf, type Shown } from '../harness/browser.js';
import { linkedAccount } from '../harness/companies.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';

const PASSWORD = 'a renter password';
const HOME = 'https://gpus.example';
const MARKUP = `"><img src=x onerror=alert(1)>'&<script>alert(1)</script>`;

let test: TestControlPlane;
let victim: Renter;
let attacker: Renter;
let browser: Browser;
beforeAll(async () => {
  test = await TestControlPlane.start();
  await test.restart({ publicUrl: HOME });
});
afterAll(() => test.stop());
beforeEach(async () => {
  [victim, attacker] = [await test.renter(0), await test.renter(0)];
  browser = new Browser(port(), HOME);
});

const port = () => Number(new URL(test.url).port);
const signIn = async ({ email } = victim, with_ = browser): Promise<Shown> =>
  with_.submit(await with_.open('/sign-in'), '/sign-in', { email, password: PASSWORD });
const pathOf = ({ url }: Shown) => new URL(url).pathname;

/** From where an attacker's page can send what the victim's browser then sends. */
const ORIGINS = [
  ['another site', 'https://evil.example'],
  ['a name beside', 'https://blog.gpus.example'],
  ['another port', 'https://gpus.example:8443'],
  ['the same name without TLS', 'http://gpus.example'],
  ['a sandbox', 'null'],
] as const;

describe.each([false, true])('a page elsewhere, in an older browser: %s', (isOld) => {
  beforeEach(() => {
    browser.isOld = isOld;
  });

  it.each(ORIGINS)('at %s (%s) sends no form in the name of the victim', async (_, from) => {
    await signIn();
    const own = hiddenFieldsOf(await browser.open('/account'), '/sign-out');
    const attacks: [string, Record<string, string>][] = [
      ['/sign-out', {}],
      ['/account/sessions/end-others', {}],
      ['/account/password', { current_password: PASSWORD, new_password: 'of the attacker' }],
      ['/accept-invite', { token: 'inv_1' }],
      ['/device', { user_code: 'BCDF-GHJK' }],
      ['/device/approve', { code_id: randomUUID() }],
      ['/device/deny', { code_id: randomUUID() }],
      ['/forgot-password', { email: victim.email }],
      ['/reset-password', { token: 'rst_1', new_password: 'of the attacker' }],
      ['/sign-in/link', { token: 'sgn_1' }],
      ['/confirm-address', { token: 'new_1', password: 'of the attacker' }],
      ['/account/companies/link', { token: '1' }],
      ['/account/companies/unlink', { identity_id: linkedAccount(test, victim) }],
      ['/sign-in/company/claim', { token: '1' }],
      ['/account/prove', { password: PASSWORD }],
      ['/account/second-factors/remove', { factor_id: victim.userId }],
      ['/account/second-factors/recovery-codes', {}],
      ['/account/second-factors/cancel-removal', {}],
      ['/account/second-factors/totp', { id: victim.userId, code: '000000', name: 'of the attacker' }],
      ['/account/second-factors/passkey', { passkey: '{}', name: 'of the attacker' }],
    ];
    const before = test.dump();
    for (const [path, fields] of attacks) {
      // Even with the token of the victim's forms.
      const shown = await browser.send(path, { method: 'POST', from, isNavigation: true, form: { ...own, ...fields } });
      expect([303, 403], path).toContain(shown.status);
    }
    expect(test.dump()).toEqual(before);
    expect(pathOf(await browser.open('/account'))).toBe('/account');
  });

  it.each(ORIGINS)('at %s (%s) signs nobody in as the attacker', async (_, from) => {
    await browser.open('/sign-in');
    const other = new Browser(port(), HOME);
    const form = {
      ...hiddenFieldsOf(await other.open('/sign-in'), '/sign-in'),
      email: attacker.email,
      password: PASSWORD,
    };
    const shown = await browser.send('/sign-in', { method: 'POST', from, isNavigation: true, form });
    expect(shown.status).toBe(403);
    expect(await browser.cookies()).not.toHaveProperty('__Host-gpurent');
  });

  it.each(ORIGINS)('at %s (%s) neither reads nor changes anything of the API', async (_, from) => {
    await signIn();
    const before = test.dump();
    for (const [method, path] of [
      ['GET', '/v1/me'],
      ['GET', '/v1/billing/transactions.csv'],
      ['POST', '/v1/auth/sign-out'],
      ['DELETE', '/v1/auth/sessions'],
    ] as const)
      for (const isNavigation of [true, false]) {
        if (isOld && isNavigation && method === 'GET') continue;
        const headers = { 'x-same-origin': '1' };
        const { status } = await browser.send(path, { method, from, isNavigation, ...(isOld ? {} : { headers }) });
        // 401: the browser has sent no cookie.
        expect([401, 403], `${method} ${path} ${isNavigation}`).toContain(status);
      }
    expect(test.dump()).toEqual(before);
  });
});

it('a form needs the token of the same visit, also from a page of the control plane', async () => {
  const page = await signIn();
  const other = new Browser(port(), HOME);
  const foreign = hiddenFieldsOf(await signIn(attacker, other), '/sign-out');
  const own = hiddenFieldsOf(page, '/sign-out');
  for (const form of [foreign, {}, { form_token: '' }, { form_token: `${own['form_token']}0` }]) {
    const shown = await browser.send('/sign-out', { method: 'POST', from: HOME, isNavigation: true, form });
    expect(shown.status).toBe(403);
  }
  expect(pathOf(await browser.open('/account'))).toBe('/account');
});

it('a form that arrives slowly does nothing for a session that has ended meanwhile', async () => {
  const page = await signIn();
  const form = new URLSearchParams(hiddenFieldsOf(page, '/account/sessions/end-others')).toString();
  const outgoing = request({
    host: '127.0.0.1',
    port: port(),
    path: '/account/sessions/end-others',
    method: 'POST',
    headers: {
      host: 'gpus.example',
      'sec-fetch-site': 'same-origin',
      expect: '100-continue',
      'content-type': 'application/x-www-form-urlencoded',
      'content-length': form.length,
      cookie: await browser.jar.getCookieString(HOME),
    },
  });
  const answered = once(outgoing, 'response');
  outgoing.flushHeaders();
  // The server has seen the headers.
  await once(outgoing, 'continue');
  await victim.api.request('DELETE', '/v1/auth/sessions');
  const before = test.dump();
  outgoing.end(form);
  const [answer] = (await answered) as [IncomingMessage];
  answer.resume();
  expect(answer.statusCode).toBe(401);
  expect(test.dump()).toEqual(before);
});

it('a browser that keeps no cookie is told why it cannot sign in', async () => {
  const page = await browser.open('/sign-in');
  await browser.jar.removeAllCookies();
  const shown = await browser.submit(page, '/sign-in', { email: victim.email, password: PASSWORD });
  expect(shown.status).toBe(403);
  expect(textOf(shown.text)).toMatch(/keeps no cookie of this address.*https, or at localhost/);
  expect(hiddenFieldsOf(shown, '/sign-in')).toMatchObject({ email: victim.email });
  // It has got one meanwhile.
  expect(pathOf(await browser.submit(shown, '/sign-in', { password: PASSWORD }))).toBe('/account');
});

it('a cookie is taken and sent only by TLS, only at this name, and not for a name beside it', async () => {
  await signIn();
  const cookie = (await browser.cookies())['__Host-gpurent'];
  expect(cookie).toMatch(/^ses_/);
  for (const elsewhere of ['http://gpus.example/', 'https://blog.gpus.example/', 'https://other.example/'])
    expect(await browser.jar.getCookieString(elsewhere, { sameSiteContext: 'strict' }), elsewhere).toBe('');
  const plain = new Browser(port(), 'http://gpus.example');
  await plain.open('/sign-in');
  expect(await plain.cookies()).toEqual({});
});

it('a name beside cannot plant a session: neither into the browser, nor beside the browser’s own', async () => {
  const planted = `__Host-gpurent=${attacker.api.token}; Domain=gpus.example; Path=/; Secure`;
  await browser.jar.setCookie(planted, 'https://blog.gpus.example/', { ignoreError: true });
  expect(await browser.cookies()).toEqual({});
  await signIn();
  // Browsers that do not know the prefix send both.
  const own = (await browser.cookies())['__Host-gpurent'];
  for (const cookies of [
    `__Host-gpurent=${attacker.api.token}; __Host-gpurent=${own}`,
    `__Host-gpurent=${own}; __Host-gpurent=${attacker.api.token}`,
  ]) {
    const headers = { host: 'gpus.example', cookie: cookies, 'sec-fetch-site': 'same-origin' };
    expect((await exchange(port(), new URL('/account', HOME), { method: 'GET', headers })).status).toBe(303);
  }
});

it('a session that was planted before the sign-in is not the one after it', async () => {
  await browser.jar.setCookie(`__Host-gpurent=${attacker.api.token}; Path=/; Secure; HttpOnly`, HOME);
  await signIn();
  const cookie = (await browser.cookies())['__Host-gpurent'];
  expect(cookie).not.toBe(attacker.api.token);
  expect((await test.api.as(attacker.api.token).request('GET', '/v1/me')).status).toBe(401);
  expect(await test.api.as(cookie).get('/v1/me')).toMatchObject({ user: { email: victim.email } });
});

describe('an address', () => {
  it.each([
    '//evil.example',
    'https://evil.example',
    '/\\evil.example',
    '/.//evil.example',
    '/\t/evil.example',
    'javascript:alert(1)',
  ])('to return to that is elsewhere is not followed: %j', async (return_to) => {
    const page = await browser.open(`/sign-in?${new URLSearchParams({ return_to }).toString()}`);
    expect(hiddenFieldsOf(page, '/sign-in')).not.toHaveProperty('return_to');
    const fields = { ...hiddenFieldsOf(page, '/sign-in'), return_to, email: victim.email, password: PASSWORD };
    const shown = await browser.send('/sign-in', { method: 'POST', from: HOME, isNavigation: true, form: fields });
    expect([shown.status, shown.headers.location]).toEqual([303, '/account']);
    expect(page.text).not.toMatch(/href="(?!\/[a-z])/);
  });

  it('cannot add a header', async () => {
    const return_to = '/account\r\nSet-Cookie: x=1\r\nX-Planted: 1';
    const page = await browser.open(`/sign-in?${new URLSearchParams({ return_to }).toString()}`);
    const form = { ...hiddenFieldsOf(page, '/sign-in'), return_to, email: victim.email, password: PASSWORD };
    const shown = await browser.send('/sign-in', { method: 'POST', from: HOME, isNavigation: true, form });
    expect(shown.status).toBe(303);
    expect(shown.headers).not.toHaveProperty('x-planted');
    expect(shown.headers['set-cookie']?.join()).not.toContain('x=1');
  });

  it('that names another server in its request line leads to none', async () => {
    const headers = { host: 'gpus.example' };
    const url = { pathname: '//evil.example/account', search: '', href: HOME };
    expect((await exchange(port(), url, { method: 'GET', headers })).status).toBe(404);
    const absolute = { pathname: 'http://evil.example/account', search: '', href: HOME };
    const { status, headers: answered } = await exchange(port(), absolute, { method: 'GET', headers });
    expect([status, answered.location ?? '/sign-in']).toEqual([
      expect.any(Number),
      expect.stringMatching(/^\/sign-in/),
    ]);
  });
});

describe('markup', () => {
  const isHarmless = (page: Shown) => {
    expect(page.text).not.toContain('<img');
    expect(page.text).not.toContain('<script');
    expect(page.text).not.toContain("onerror=alert(1)>'&<");
  };

  it('in every field that is shown again stays text', async () => {
    const signInPage = await browser.open('/sign-in');
    isHarmless(await browser.submit(signInPage, '/sign-in', { email: MARKUP, password: MARKUP, return_to: MARKUP }));
    const signUp = await browser.open('/sign-up');
    const typed = { email: MARKUP, name: MARKUP, password: MARKUP, invite_token: MARKUP, return_to: `/${MARKUP}` };
    const shown = await browser.submit(signUp, '/sign-up', typed);
    isHarmless(shown);
    expect(hiddenFieldsOf(shown, '/sign-up')).toMatchObject({ email: MARKUP, name: MARKUP, invite_token: MARKUP });
    const { form_token = '' } = hiddenFieldsOf(shown, '/sign-up');
    const named = { form_token, [MARKUP]: MARKUP, constructor: 'x', __proto__: 'y' };
    isHarmless(await browser.send('/sign-up', { method: 'POST', from: HOME, isNavigation: true, form: named }));
  });

  it('in an address stays text', async () => {
    const search = new URLSearchParams({ return_to: `/${MARKUP}`, done: MARKUP, token: MARKUP, invite_token: MARKUP });
    for (const path of [
      '/sign-in',
      '/sign-up',
      '/accept-invite',
      '/forgot-password',
      '/reset-password',
      '/confirm-address',
    ])
      isHarmless(await browser.open(`${path}?${search.toString()}`));
    await signIn();
    for (const path of ['/account', '/account/password', '/accept-invite', '/device', '/device/approve'])
      isHarmless(await browser.open(`${path}?${search.toString()}`));
    for (const done of ['__proto__', 'constructor', 'toString'])
      expect((await browser.open(`/account?done=${done}`)).text).not.toContain('role="status"');
  });

  it('in what is stored stays text', async () => {
    const organization = await victim.api.post<{ id: string }>('/v1/orgs', { name: MARKUP.slice(0, 64) });
    expect(organization.id).toBeTruthy();
    test.core.platform.store.transact((tx) => {
      tx.run(query.updateTable('users').set({ name: MARKUP }).where('id', '=', victim.userId));
      const odd = { device: MARKUP, last_network: MARKUP };
      tx.run(query.updateTable('sessions').set(odd).where('user_id', '=', victim.userId));
    });
    const page = await signIn();
    expect(textOf(page.text)).toContain(MARKUP);
    isHarmless(page);
  });
});

it('a page that another machine’s name shows is none, and sets no cookie', async () => {
  await test.host({ publicAddress: 'gpu1.example' });
  for (const path of ['/sign-in', '/sign-up', '/account']) {
    const headers = { host: 'gpu1.example:8080' };
    const shown = await exchange(port(), new URL(path, HOME), { method: 'GET', headers });
    expect([shown.status, shown.headers['set-cookie']]).toEqual([403, undefined]);
    expect(textOf(shown.text)).toContain('Instances are reached at gpu1.example');
  }
});

it('what is no form of a page is refused as a page', async () => {
  const page = await browser.open('/sign-in');
  const send = (type: string, body: string) =>
    browser.jar.getCookieString(HOME).then((cookie) =>
      exchange(port(), new URL('/sign-in', HOME), {
        method: 'POST',
        body,
        headers: {
          host: 'gpus.example',
          cookie,
          'sec-fetch-site': 'same-origin',
          'content-type': type,
        },
      }),
    );
  const form = 'application/x-www-form-urlencoded';
  const { form_token = '' } = hiddenFieldsOf(page, '/sign-in');
  for (const [type, body, status] of [
    ['application/json', JSON.stringify({ form_token, email: 'a@b.example', password: 'x' }), 415],
    ['multipart/form-data; boundary=x', '--x--', 415],
    ['text/plain', `form_token=${form_token}`, 415],
    [form, `form_token=${form_token}&email=${'a'.repeat(17_000)}`, 413],
    [form, `form_token=${form_token}&email=a%40b.example&password=x&is_operator=1`, 422],
    [form, '', 403],
    [form, '%', 403],
    [form, `form_token=${form_token}&form_token=x&email=&password=x`, 422],
    [form, `form_token=${form_token}&email=%ff%fe&password=x`, 400],
  ] as const) {
    const shown = await send(type, body);
    expect(shown.status, `${type} ${body.slice(0, 60)}`).toBe(status);
    expect(shown.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(shown.text).toMatch(/^<!doctype html>/);
  }
});

it('a password goes into no page, no log and no address', async () => {
  const password = 'very secret words to sign in with';
  const page = await browser.open('/sign-in');
  const shown = await browser.submit(page, '/sign-in', { email: victim.email, password });
  expect(shown.text + shown.url).not.toContain(password);
  const session = await signIn();
  const { '__Host-gpurent': token = '' } = await browser.cookies();
  expect(session.text + session.url).not.toContain(token);
  const logged = test.logged(0).join('\n');
  for (const secret of [password, token, hiddenFieldsOf(session, '/sign-out')['form_token'] ?? ''])
    expect(logged).not.toContain(secret);
});
