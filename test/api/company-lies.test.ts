import { generateKeyPair } from 'jose';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { textOf, type Browser, type Shown } from '../harness/browser.js';
import { begin, browserAt, comeBack, setCompany } from '../harness/companies.js';
import { TestControlPlane } from '../harness/control-plane.js';
import { LyingIssuer } from '../harness/lying-issuer.js';

const INVALID =
  'The answer of the company is not valid; its reason is in the log of the operator; begin the sign-in again.';
const SILENT = "The company's sign-in does not answer; try again shortly.";

let test: TestControlPlane;
let issuer: LyingIssuer;
let browser: Browser;
let restore: () => void;
let before: Record<string, string>;

beforeAll(async () => {
  test = await TestControlPlane.start();
  issuer = await LyingIssuer.start();
  await setCompany(test, issuer.url);
  restore = test.snapshot();
  before = test.dump();
});
beforeEach(() => {
  browser = browserAt(test);
});
afterEach(() => {
  issuer.repent();
  // What the issuer says of itself is asked again.
  test.clock.advance(3_600_001);
  restore();
});
afterAll(async () => {
  await test.stop();
  await issuer.stop();
});

const problemOf = ({ text }: Shown) => textOf(/<div class="problem" role="alert">.*?<\/div>/s.exec(text)?.[0] ?? '');
const now = () => Math.floor(Date.now() / 1_000);

async function signIn(changes: Record<string, string> = {}): Promise<Shown> {
  return comeBack(browser, issuer.signIn(await begin(browser), changes));
}

async function expectRefused(shown: Shown, status: number, words: string): Promise<void> {
  expect([shown.status, problemOf(shown)]).toEqual([status, words]);
  expect(test.dump()).toEqual(before);
  expect(await browser.cookies()).not.toHaveProperty('__Host-gpurent');
}

describe('an issuer that answers', () => {
  it('as it should opens a session, once it has got the secret that fits what the browser has brought', async () => {
    const address = await begin(browser);
    expect((await comeBack(browser, issuer.signIn(address))).status).toBe(200);
    const sent = issuer.exchanges.at(-1);
    expect(sent?.get('code_verifier')).toMatch(/^.{43}$/);
    expect(address).not.toContain(sent?.get('code_verifier'));
  });

  it.each([
    ['another nonce', { nonce: 'another' }],
    ['no nonce', { nonce: undefined }],
    ['another issuer', { iss: 'https://issuer.example' }],
    ['another audience', { aud: 'somebody else' }],
    ['more than one audience, and another party', { aud: ['gpurent', 'other'], azp: 'other' }],
    ['no subject', { sub: undefined }],
    ['a subject that is too long', { sub: 'x'.repeat(256) }],
    ['an end more than a minute ago', { exp: () => now() - 62 }],
    ['no end', { exp: undefined }],
    ['a beginning more than a minute ahead', { nbf: () => now() + 180 }],
  ] as [string, Record<string, unknown>][])('with a token that has %s proves nothing', async (_what, lies) => {
    const made = Object.entries(lies).map(([name, lie]) => [
      name,
      typeof lie === 'function' ? (lie as () => unknown)() : lie,
    ]);
    issuer.lies = Object.fromEntries(made) as Record<string, unknown>;
    await expectRefused(await signIn(), 400, INVALID);
  });

  it('by a clock that differs by a minute is believed', async () => {
    issuer.lies = { exp: now() - 30, iat: now() - 350 };
    expect((await signIn()).status).toBe(200);
    browser = browserAt(test);
    issuer.lies = { nbf: now() + 50, iat: now() + 50, exp: now() + 350 };
    expect((await signIn()).status).toBe(200);
  });

  it('with a token that somebody else has signed proves nothing', async () => {
    issuer.forger = (await generateKeyPair('RS256')).privateKey;
    await expectRefused(await signIn(), 400, INVALID);
  });

  it('in the name of another issuer proves nothing', async () => {
    await expectRefused(await signIn({ iss: 'https://issuer.example' }), 400, INVALID);
  });

  it('to a sign-in that was begun at another proves nothing, whatever it knows of that', async () => {
    const evil = await LyingIssuer.start();
    evil.lies = { email: 'somebody@evil.example' };
    await setCompany(test, evil.url, { id: 'evil', domains: [{ domain: 'evil.example' }] });
    const back = evil.signIn(await begin(browser));
    const shown = await comeBack(browser, back.replace('/acme/', '/evil/'));
    expect(shown.status).toBe(400);
    expect(await browser.cookies()).not.toHaveProperty('__Host-gpurent');
    expect(evil.exchanges).toEqual([]);
    await evil.stop();
  });

  it('with metadata of another issuer proves nothing', async () => {
    test.clock.advance(3_600_001);
    issuer.metadata = { issuer: 'https://issuer.example' };
    const shown = await browser.open('/sign-in/company/acme/start');
    await expectRefused(shown, 400, INVALID);
  });

  it.each([true, 'true', 1])('says by the true value alone that an address is verified, not by %j', async (value) => {
    issuer.lies = { email_verified: value };
    expect((await signIn()).status).toBe(value === true ? 200 : 403);
  });

  it.each(['', ' ', 5, null, ['somebody']])('with the subject %j names nobody', async (sub) => {
    issuer.lies = { sub };
    await expectRefused(await signIn(), 400, INVALID);
  });

  it('with a name that cannot be shown gives the account one that can', async () => {
    issuer.lies = { name: ` \u202eA\u0000lice${'x'.repeat(100)}` };
    await signIn();
    const { items } = await test.operator.get<{ items: { email: string; name: string }[] }>('/v1/operator/users');
    expect(items.find(({ email }) => email === 'somebody@acme.example')?.name).toBe(`Alice${'x'.repeat(59)}`);
  });
});

describe('a proof at a company', () => {
  const AGAIN = '?again=yes';
  const GUARDED = '/account/second-factors/totp';
  const asksToProve = async () => new URL((await browser.open(GUARDED)).url).pathname === '/account/prove';

  it('asks the company to sign the person in again, and to say when it has', async () => {
    const parameters = async (search: string) =>
      Object.fromEntries(new URL(await begin(browser, 'acme', search)).searchParams);
    expect(await parameters(AGAIN)).toMatchObject({ prompt: 'login', max_age: '0' });
    const plain = await parameters('');
    expect([plain['prompt'], plain['max_age']]).toEqual([undefined, undefined]);
  });

  it.each([
    ['does not say when', () => undefined],
    ['names a sign-in from more than a minute before', () => now() - 65],
  ])('is refused where the company %s', async (_what, time) => {
    const address = await begin(browser, 'acme', AGAIN);
    issuer.lies = { auth_time: time() };
    await expectRefused(await comeBack(browser, issuer.signIn(address)), 400, INVALID);
    expect(test.logged(40).join()).toContain('auth_time');
  });

  it('counts from the sign-in there, which can take a while', async () => {
    const address = await begin(browser, 'acme', AGAIN);
    test.clock.advance(300_000);
    issuer.lies = { auth_time: now() - 290 };
    expect((await comeBack(browser, issuer.signIn(address))).status).toBe(200);
    expect(await asksToProve()).toBe(false);
    test.clock.advance(615_000);
    expect(await asksToProve()).toBe(true);
  });

  it('is no sign-in that the company has remembered for longer than 15 minutes', async () => {
    issuer.lies = { auth_time: now() - 901 };
    expect((await signIn()).status).toBe(200);
    expect(await asksToProve()).toBe(true);
  });
});

describe('an issuer that does not answer', () => {
  it('is waited for ten seconds', async () => {
    const address = await begin(browser);
    let isAsked = false;
    issuer.intercept = () => (isAsked = true);
    const shown = comeBack(browser, issuer.signIn(address));
    await eventually('the issuer to be asked', () => isAsked);
    test.clock.advance(9_999);
    test.clock.advance(1);
    await expectRefused(await shown, 503, SILENT);
    expect(test.logged(40).join()).toContain('does not answer');
  });

  it('is asked again only after five seconds, whoever wants to sign in', async () => {
    test.clock.advance(3_600_001);
    issuer.intercept = (_request, response) => {
      response.writeHead(500).end('no');
      return true;
    };
    const asked = issuer.asked.length;
    for (let time = 0; time < 5; time++) {
      const shown = await browserAt(test).open('/sign-in/company/acme/start');
      expect([shown.status, problemOf(shown)]).toEqual([503, SILENT]);
    }
    expect(issuer.asked.length - asked).toBe(1);
    issuer.repent();
    test.clock.advance(5_000);
    await begin(browser);
  });

  it('is asked by twenty at once, and others are refused', async () => {
    const visitors = await Promise.all(
      Array.from({ length: 21 }, async () => {
        const visitor = browserAt(test);
        return { visitor, address: issuer.signIn(await begin(visitor)) };
      }),
    );
    let asked = 0;
    issuer.intercept = () => (asked += 1) > 0;
    const shown = visitors.map(({ visitor, address }) => comeBack(visitor, address));
    await eventually('the issuer to be asked', () => asked === 20);
    test.clock.advance(10_000);
    expect((await Promise.all(shown)).map(({ status }) => status)).toEqual(Array(21).fill(503));
    expect(asked).toBe(20);
  });

  it.each([
    ['too much', 503, (body: string) => body + ' '.repeat(256 * 1024)],
    ['something else', 400, () => '<html></html>'],
  ])('but says %s is refused', async (_what, status, bodyOf) => {
    const address = await begin(browser);
    issuer.intercept = (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(bodyOf('{}'));
      return true;
    };
    const shown = await comeBack(browser, issuer.signIn(address));
    expect(shown.status).toBe(status);
    expect(test.dump()).toEqual(before);
  });

  it('but leads elsewhere is not followed', async () => {
    const elsewhere = await LyingIssuer.start();
    const address = await begin(browser);
    issuer.intercept = (_request, response) => {
      response.writeHead(307, { location: `${elsewhere.url}/token` }).end();
      return true;
    };
    await expectRefused(await comeBack(browser, issuer.signIn(address)), 503, SILENT);
    expect(elsewhere.asked).toEqual([]);
    await elsewhere.stop();
  });

  it('but names another host of this machine is not followed there', async () => {
    const elsewhere = await LyingIssuer.start();
    test.clock.advance(3_600_001);
    issuer.metadata = { token_endpoint: `${elsewhere.url.replace('127.0.0.1', '127.0.0.2')}/token` };
    await expectRefused(await signIn(), 503, SILENT);
    issuer.metadata = { token_endpoint: 'http://issuer.example/token' };
    test.clock.advance(3_600_001);
    await expectRefused(await signIn(), 503, SILENT);
    expect(elsewhere.asked).toEqual([]);
    expect(test.logged(40).join()).toContain('is in a network that issuers must not lead to');
    await elsewhere.stop();
  });
});

describe('what strangers begin', () => {
  it('is bounded for each network: the oldest makes room', async () => {
    const visitors: { visitor: Browser; address: string }[] = [];
    for (let count = 0; count < 101; count++) {
      const visitor = browserAt(test);
      visitors.push({ visitor, address: issuer.signIn(await begin(visitor)) });
    }
    const [first, second] = visitors;
    if (!first || !second) throw new Error('nobody has begun');
    expect((await comeBack(first.visitor, first.address)).status).toBe(400);
    expect((await comeBack(second.visitor, second.address)).status).toBe(200);
  });
});
