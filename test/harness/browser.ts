import { request, type IncomingHttpHeaders } from 'node:http';
import { CookieJar } from 'tough-cookie';

type Site = 'none' | 'same-origin' | 'same-site' | 'cross-site';

export interface Visit {
  method?: string;
  /** The origin of the page that sends the request; absent: the person has typed the address. */
  from?: string;
  /** Whether the browser shows the answer as its next page, as after a click, or a script has asked for it. */
  isNavigation?: boolean;
  /** The fields of a form. */
  form?: Record<string, string>;
  headers?: Record<string, string>;
}

/** An answer, as a person sees it. */
export interface Shown {
  url: string;
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

/** Rules by which real browsers send cookies and say where requests come from. It runs no script; neither do the pages. */
export class Browser {
  readonly jar = new CookieJar(undefined, { prefixSecurity: 'strict' });
  userAgent = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
  /** Older browsers do not send Sec-Fetch-Site and the like. */
  isOld = false;

  /** Every name leads to this port of loopback. */
  constructor(
    private readonly port: number,
    readonly home: string,
  ) {}

  /** Opens an address, and follows where it leads. */
  async open(path: string, visit: Visit = {}): Promise<Shown> {
    let shown = await this.send(path, { isNavigation: true, ...visit });
    for (let hops = 0; [301, 302, 303].includes(shown.status); hops++) {
      if (hops > 5) throw new Error(`${path} leads nowhere`);
      const { from } = visit;
      shown = await this.send(new URL(shown.headers.location ?? '', shown.url).href, {
        isNavigation: true,
        ...(from === undefined ? {} : { from }),
      });
    }
    return shown;
  }

  /** Fills in the form of a page that is sent to `action`, and sends it. */
  submit(page: Shown, action: string, typed: Record<string, string> = {}): Promise<Shown> {
    return this.open(action, {
      method: 'POST',
      from: new URL(page.url).origin,
      form: {
        ...hiddenFieldsOf(page, action),
        ...typed,
      },
    });
  }

  /** Sends one request, with the cookies that a browser would send. */
  async send(path: string, { method = 'GET', from, isNavigation = false, form, headers = {} }: Visit): Promise<Shown> {
    const url = new URL(path, this.home);
    const site = siteOf(url, from);
    const isSafe = method === 'GET' || method === 'HEAD';
    const context = site !== 'cross-site' ? 'strict' : isNavigation && isSafe ? 'lax' : 'none';
    const cookie = await this.jar.getCookieString(url.href, { sameSiteContext: context });
    const origin = !isSafe || (!isNavigation && site !== 'same-origin') ? from : undefined;
    const shown = await exchange(this.port, url, {
      method,
      body: form && new URLSearchParams(form).toString(),
      headers: {
        host: url.host,
        'user-agent': this.userAgent,
        ...(url.protocol === 'https:' ? { 'x-forwarded-proto': 'https' } : {}),
        ...(cookie === '' ? {} : { cookie }),
        ...(origin === undefined ? {} : { origin }),
        ...(this.isOld ? {} : { 'sec-fetch-site': site }),
        ...(isNavigation && !this.isOld ? { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' } : {}),
        ...(form ? { 'content-type': 'application/x-www-form-urlencoded' } : {}),
        ...headers,
      },
    });
    for (const each of shown.headers['set-cookie'] ?? [])
      await this.jar.setCookie(each, url.href, { sameSiteContext: context, ignoreError: true });
    return shown;
  }

  async cookies(): Promise<Record<string, string>> {
    const cookies = await this.jar.getCookies(this.home);
    return Object.fromEntries(cookies.map(({ key, value }) => [key, value]));
  }
}

/** Every port of a name is of its site, and so are the names below its last two parts. */
function siteOf(url: URL, from: string | undefined): Site {
  if (from === undefined) return 'none';
  if (from === url.origin) return 'same-origin';
  const site = (host: string) => host.split('.').slice(-2).join('.');
  return URL.canParse(from) && site(new URL(from).hostname) === site(url.hostname) ? 'same-site' : 'cross-site';
}

export function exchange(
  port: number,
  url: Pick<URL, 'pathname' | 'search' | 'href'>,
  { method, headers, body }: { method: string; headers: Record<string, string>; body?: string | undefined },
): Promise<Shown> {
  return new Promise((resolve, reject) => {
    const path = url.pathname + url.search;
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    const outgoing = request(
      { host: '127.0.0.1', port, method, path, headers: { ...headers, ...length } },
      (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (part: string) => (text += part));
        answer.on('error', reject).on('end', () => {
          resolve({ url: url.href, status: answer.statusCode ?? 0, headers: answer.headers, text });
        });
      },
    );
    outgoing.on('error', reject).end(body);
  });
}

/** Returns the values that a form has before anybody types something: hidden and prefilled fields. */
export function hiddenFieldsOf({ text }: Shown, action: string): Record<string, string> {
  const form = [...text.matchAll(/<form [^>]*action="([^"]*)"[^>]*>(.*?)<\/form>/gs)].find(([, to]) => to === action);
  if (!form) throw new Error(`the page has no form to ${action}: ${textOf(text)}`);
  const inputs = [...(form[2] ?? '').matchAll(/<input\s([^>]*)>/gs)].map(([, attributes = '']) => attributes);
  const filled = inputs.filter((attributes) => !attributes.includes('type="checkbox"'));
  return Object.fromEntries(
    filled.flatMap((attributes) => {
      const [name, value] = [attributeOf(attributes, 'name'), attributeOf(attributes, 'value')];
      return name === undefined || value === undefined ? [] : [[name, value] as const];
    }),
  );
}

export function attributeOf(attributes: string, name: string): string | undefined {
  const value = new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1];
  return value === undefined ? undefined : unescaped(value);
}

/** Returns the words of a page. */
export function textOf(page: string): string {
  return unescaped(
    page
      .replace(/<style>.*?<\/style>/gs, '')
      .replace(/<[^>]*>/g, ' ')
      .replace(/\s+/g, ' '),
  ).trim();
}

function unescaped(text: string): string {
  const entities: Record<string, string> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" };
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (entity) => entities[entity] ?? '');
}
