import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { browserHost } from '../../control-plane/domain/browser-host.js';
import { deviceOf } from '../../control-plane/domain/identity/device.js';
import { mayChange, mayRead, isFromOwnPage, type Provenance } from '../../control-plane/domain/identity/same-origin.js';
import { html } from '../../control-plane/http/pages/html.js';
import { ownPath } from '../../control-plane/http/pages/return-to.js';

it.each([
  ['GPU1.Example.com', 'gpu1.example.com'],
  ['gpu1.example.com.', 'gpu1.example.com'],
  ['gpu1.example.com:8443', 'gpu1.example.com'],
  ['203.0.113.7', '203.0.113.7'],
  ['203.0.113.7:80', '203.0.113.7'],
  ['0x7f.1', '127.0.0.1'],
  ['2001:DB8:0::7', '[2001:db8::7]'],
  ['[2001:db8::7]', '[2001:db8::7]'],
  ['[2001:0db8::7]:443', '[2001:db8::7]'],
  ['localhost:8080', 'localhost'],
  ['', undefined],
  ['user@gpu1.example.com', undefined],
  ['a b', undefined],
  ['evil.example/gpu1.example.com', undefined],
])('browsers keep the cookies of %j by %j', (name, host) => {
  expect(browserHost(name)).toBe(host);
});

it.each([
  ['Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', 'Firefox on Linux'],
  [
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36',
    'Chrome on Windows',
  ],
  [
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36 Edg/141.0.0.0',
    'Edge on Windows',
  ],
  [
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15',
    'Safari on macOS',
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1',
    'Safari on an iPhone',
  ],
  [
    'Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36',
    'Chrome on Android',
  ],
  ['curl/8.5.0', 'curl'],
  ['python-requests/2.32.3', 'A Python program'],
  ['node', 'A Node.js program'],
  ['something else', null],
  ['', null],
  [undefined, null],
])('%j is %j', (userAgent, device) => {
  expect(deviceOf(userAgent)).toBe(device);
});

it('a client can show nobody a text of its own', () => {
  const words = /^[A-Za-z .]{1,40}$/;
  fc.assert(
    fc.property(fc.string({ maxLength: 2_000 }), fc.constantFrom('', 'Firefox/', ' Linux ', 'curl/'), (text, word) => {
      const device = deviceOf(word + text);
      return device === null || words.test(device);
    }),
  );
});

describe('a request that has a cookie', () => {
  const own = 'https://gpus.example';
  const of = (provenance: Partial<Provenance>): Provenance => ({
    site: undefined,
    origin: undefined,
    isMarked: true,
    ...provenance,
  });

  it.each<[string, Partial<Provenance>, boolean]>([
    ['a script of a page', { site: 'same-origin' }, true],
    ['another site', { site: 'cross-site' }, false],
    ['another port or a name beside', { site: 'same-site' }, false],
    ['the address bar', { site: 'none' }, false],
    ['a header that came twice', { site: 'same-origin, same-origin' }, false],
    ['nobody knows', { site: '' }, false],
    ['another site that claims the origin', { site: 'cross-site', origin: own }, false],
    ['an older browser, of a page', { origin: own }, true],
    ['an older browser, of another site', { origin: 'https://evil.example' }, false],
    ['an older browser, of http', { origin: 'http://gpus.example' }, false],
    ['an older browser, of a name that begins alike', { origin: 'https://gpus.example.evil.example' }, false],
    ['an older browser, of a sandbox', { origin: 'null' }, false],
    ['nothing that says so', {}, false],
  ])('changes something, from %s: %j is %s', (_, provenance, isAllowed) => {
    expect(mayChange(of(provenance), own)).toBe(isAllowed);
    expect(mayChange(of({ ...provenance, isMarked: false }), own)).toBe(false);
    expect(isFromOwnPage(of(provenance), own)).toBe(isAllowed);
  });

  it.each<[string, Partial<Provenance>, boolean]>([
    ['a script of a page', { site: 'same-origin', isMarked: false }, true],
    ['the address bar', { site: 'none', isMarked: false }, true],
    ['another site', { site: 'cross-site' }, false],
    ['another port or a name beside', { site: 'same-site' }, false],
    ['an older browser, of a page', { isMarked: true }, true],
    ['an older browser, embedded somewhere', { isMarked: false }, false],
    ['an older browser, of another site', { origin: 'https://evil.example' }, false],
  ])('reads something, from %s: %j is %s', (_, provenance, isAllowed) => {
    expect(mayRead(of(provenance), own)).toBe(isAllowed);
  });
});

describe('an address to return to', () => {
  it.each([
    ['/account', '/account'],
    ['/accept-invite?token=inv_1#x', '/accept-invite?token=inv_1#x'],
    ['/a b', '/a%20b'],
    ['/a%0d%0aSet-Cookie:x', '/a%0d%0aSet-Cookie:x'],
  ])('%j is %j', (given, path) => {
    expect(ownPath(given)).toBe(path);
  });

  it.each([
    undefined,
    '',
    'account',
    '//evil.example',
    '/\\evil.example',
    '\\\\evil.example',
    '/\t/evil.example',
    '/\r\n/evil.example',
    ' //evil.example',
    '/.//evil.example',
    '/a/..//evil.example',
    '/%2e//evil.example',
    'https://evil.example',
    'https:evil.example',
    'javascript:alert(1)',
    'data:text/html,x',
    '//',
    `/${'a'.repeat(2_048)}`,
  ])('is not %j', (given) => {
    expect(ownPath(given)).toBeUndefined();
  });

  it('leads nowhere else, whatever it is', () => {
    const parts = fc.constantFrom(
      '/',
      '\\',
      '.',
      '..',
      '\t',
      '\n',
      '%2f',
      '%5c',
      'evil.example',
      '@',
      ':',
      '?',
      '#',
      'a',
    );
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 8 }), (given) => {
        const path = ownPath(given.join(''));
        return path === undefined || new URL(path, 'https://gpus.example/sign-in').origin === 'https://gpus.example';
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('a piece of a page', () => {
  it('escapes every value', () => {
    fc.assert(
      fc.property(fc.string(), (value) => {
        const { text } = html`<p title="${value}">${value}</p>`;
        return /^<p title="[^<>"']*">[^<>"']*<\/p>$/s.test(text);
      }),
    );
    expect(html`${['<', html`<b>${'&'}</b>`, null, undefined, false, 1]}`.text).toBe('&lt;<b>&amp;</b>1');
  });

  it('is not made where escaping is not enough', () => {
    expect(() => html`<p title=${'x'}></p>`).toThrow('quotes');
    for (const bad of ['javascript:alert(1)', 'https://evil.example', '//evil.example', '/\\evil.example'])
      expect(() => html`<a href="${bad}">x</a>`).toThrow('path of this server');
    expect(html`<a href="${'/account'}">x</a>`.text).toBe('<a href="/account">x</a>');
  });

  it('takes no text for a piece because it looks like one', () => {
    const forged = { text: '<script>' } as unknown as string;
    expect(() => html`${forged}`.text).toThrow();
  });
});
