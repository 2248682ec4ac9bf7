import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import { Browser, hiddenFieldsOf, textOf, type Shown } from '../harness/browser.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';

const PASSWORD = 'a renter password';
const HOME = 'https://gpus.example';
const NAME = 'gpurent on laptop';

interface Codes {
  device_code: string;
  user_code: string;
  verification_uri: string;
}

let test: TestControlPlane;
let renter: Renter;
let browser: Browser;
beforeAll(async () => {
  test = await TestControlPlane.start();
  await test.restart({ publicUrl: HOME });
});
afterAll(() => test.stop());
beforeEach(async () => {
  renter = await test.renter(0);
  browser = new Browser(Number(new URL(test.url).port), HOME);
});

const begin = async (from = '127.0.0.1'): Promise<Codes> => {
  const headers = { 'X-Forwarded-For': from, 'User-Agent': 'curl/8.5' };
  return (await test.api.request<Codes>('POST', '/v1/auth/device', { name: NAME }, headers)).body;
};
const poll = async ({ device_code }: Codes) => {
  test.clock.advance(5_000);
  return test.api.request<{ code?: string; token: string }>('POST', '/v1/auth/device/token', { device_code });
};
const pathOf = ({ url }: Shown) => new URL(url).pathname + new URL(url).search;
const problemOf = ({ text }: Shown) => textOf(/<div class="problem" role="alert">.*?<\/div>/s.exec(text)?.[0] ?? '');
const signIn = async (path = '/sign-in') =>
  browser.submit(await browser.open(path), '/sign-in', { email: renter.email, password: PASSWORD });
const typeCode = async ({ user_code }: Pick<Codes, 'user_code'>) =>
  browser.submit(await browser.open('/device'), '/device', { user_code });

describe('a program', () => {
  it('is approved by somebody who opens its address, signs in, types the code and says yes', async () => {
    const codes = await begin();
    const page = await signIn(codes.verification_uri);
    expect(pathOf(page)).toBe('/device');
    const asked = await browser.submit(page, '/device', { user_code: codes.user_code.toLowerCase() });
    expect(pathOf(asked)).toBe('/device/approve');
    const words = textOf(asked.text);
    expect(words).toContain(`calls itself ${NAME} wants to sign in as ${renter.email}`);
    expect(words).toContain('from 127.0.0.1 (curl). That is the address that you use now.');
    const done = await browser.submit(asked, '/device/approve');
    expect(pathOf(done)).toBe('/device?done=device-approved');
    const { token } = (await poll(codes)).body;
    const account = await browser.open('/account');
    expect(textOf(account.text)).toContain(`${NAME} (A Node.js program)`);
    const { items } = await renter.api.get<{ items: { id: string; name: string | null }[] }>('/v1/auth/sessions');
    const session_id = items.find(({ name }) => name === NAME)?.id ?? '';
    await browser.submit(account, '/account/sessions/end', { session_id });
    expect((await test.api.as(token).request('GET', '/v1/me')).status).toBe(401);
  });

  it('is denied', async () => {
    const codes = await begin('203.0.113.9');
    await signIn();
    const asked = await typeCode(codes);
    expect(textOf(asked.text)).toContain('from 203.0.113.9 (curl). You use another address now.');
    const done = await browser.submit(asked, '/device/deny');
    expect(textOf(done.text)).toContain('The program was denied, and cannot sign in.');
    expect((await poll(codes)).body.code).toBe('ACCESS_DENIED');
    const again = await browser.submit(asked, '/device/approve');
    expect([again.status, problemOf(again)]).toEqual([
      404,
      'This program waits no more, or you have typed another code meanwhile.',
    ]);
  });

  it('is approved after the password is given again, where the sign-in is older than 15 minutes', async () => {
    const codes = await begin();
    await signIn();
    test.clock.advance(15 * MINUTE_MS + 1);
    const fresh = await begin();
    const asked = await typeCode(fresh);
    const proof = await browser.submit(asked, '/device/approve');
    expect(pathOf(proof)).toBe('/account/prove?return_to=%2Fdevice%2Fapprove');
    const again = await browser.submit(proof, '/account/prove', { password: PASSWORD });
    expect(pathOf(again)).toBe('/device/approve');
    await browser.submit(again, '/device/approve');
    expect((await poll(codes)).body.code).toBe('EXPIRED_TOKEN');
    expect((await poll(fresh)).status).toBe(200);
  });

  it('is not found by a wrong code, five times', async () => {
    await signIn();
    for (let count = 0; count < 5; count++) {
      const wrong = await typeCode({ user_code: 'BCDF-GHJK' });
      expect([wrong.status, problemOf(wrong)]).toEqual([
        404,
        'No program waits with this code. Look at it again, or let the program show a new one.',
      ]);
    }
    const refused = await typeCode(await begin());
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, '600']);
  });
});

describe('a link of somebody else', () => {
  it('fills in nothing, and shows nothing to approve: the person types the code', async () => {
    const codes = await begin('203.0.113.9');
    await signIn();
    const { user_code } = codes;
    const search = new URLSearchParams({ user_code, code: user_code, code_id: user_code, return_to: '/device' });
    for (const path of ['/device', '/device/approve', '/device/deny']) {
      const page = await browser.open(`${path}?${search.toString()}#${user_code}`, { from: 'https://evil.example' });
      expect(page.text).not.toContain(user_code);
      expect(page.text).not.toContain(NAME);
      if (path === '/device') expect(hiddenFieldsOf(page, '/device')).not.toHaveProperty('user_code');
      else expect(page.text).not.toContain(`action="${path}"`);
    }
    expect((await poll(codes)).body.code).toBe('AUTHORIZATION_PENDING');
  });

  it('types nothing after a sign-in that it leads to', async () => {
    const codes = await begin();
    const page = await signIn(`/device?user_code=${codes.user_code}`);
    expect(hiddenFieldsOf(page, '/device')).not.toHaveProperty('user_code');
    expect((await poll(codes)).body.code).toBe('AUTHORIZATION_PENDING');
  });

  it('sends no form, and puts no page into a frame', async () => {
    const codes = await begin();
    await signIn();
    const asked = await typeCode(codes);
    expect(asked.headers).toMatchObject({ 'x-frame-options': 'DENY' });
    expect(asked.headers['content-security-policy']).toContain("frame-ancestors 'none'");
    const { code_id = '', form_token = '' } = hiddenFieldsOf(asked, '/device/approve');
    const before = test.dump();
    for (const [from, token] of [
      ['https://evil.example', form_token],
      [HOME, ''],
    ] as const) {
      const form = { code_id, form_token: token };
      const sent = await browser.send('/device/approve', { method: 'POST', from, isNavigation: true, form });
      expect([303, 403]).toContain(sent.status);
    }
    expect(test.dump()).toEqual(before);
  });
});

it('what is approved is what was shown', async () => {
  const [first, second] = [await begin(), await begin('203.0.113.9')];
  await signIn();
  const shown = await typeCode(first);
  // In another tab.
  await typeCode(second);
  const refused = await browser.submit(shown, '/device/approve');
  expect(refused.status).toBe(404);
  for (const codes of [first, second]) expect((await poll(codes)).body.code).toBe('AUTHORIZATION_PENDING');
});
