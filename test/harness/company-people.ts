import { HOUR_MS } from '../../shared/time.js';
import type { ApiClient } from './api-client.js';
import type { Browser, Shown } from './browser.js';
import { begin, browserAt, comeBack, setCompany } from './companies.js';
import type { TestControlPlane } from './control-plane.js';
import type { LyingIssuer } from './lying-issuer.js';

export interface Member {
  organization_id: string;
  role: string;
}

/** How many hours the sessions of the company last. */
export const SESSION_HOURS = 8;

/** People who sign in at a company whose sessions last eight hours and are renewed silently, each with a browser of its own. */
export class CompanyPeople {
  constructor(
    private readonly test: TestControlPlane,
    readonly issuer: LyingIssuer,
  ) {}

  setUp(organizationId: string, changes: Record<string, unknown> = {}): Promise<void> {
    const domains = [{ domain: 'acme.example', organization_id: organizationId }];
    const sessions = { session_hours: SESSION_HOURS, renews_sessions: true };
    return setCompany(this.test, this.issuer.url, { domains, ...sessions, ...changes });
  }

  /** Signs somebody in at the company. */
  async signIn(name: string, browser = browserAt(this.test)): Promise<Browser> {
    this.become(name);
    const shown = await comeBack(browser, this.issuer.signIn(await begin(browser)));
    if (shown.status !== 200) throw new Error(`${name} is not signed in: ${shown.text}`);
    return browser;
  }

  /** Lets this person be signed in at the issuer. */
  become(name: string): void {
    this.issuer.lies = { sub: name, email: `${name}@acme.example` };
  }

  /** Opens a page when a session is to be renewed, and returns the address at the issuer to which that leads; undefined: the page opens. */
  async open(browser: Browser, path = '/account'): Promise<string | undefined> {
    const { status, headers } = await browser.send(path, { isNavigation: true });
    const next = headers.location ?? '';
    return status === 303 && next.startsWith(this.issuer.url) ? next : undefined;
  }

  /** Opens a page once half of the session is over. */
  async openLate(browser: Browser, path = '/account'): Promise<string> {
    this.test.clock.advance((SESSION_HOURS / 2) * HOUR_MS);
    const next = await this.open(browser, path);
    if (next === undefined) throw new Error('nothing is renewed');
    return next;
  }

  /** Comes back from a silent renewal with a no of the issuer. */
  async refuse(browser: Browser, error = 'access_denied', changes: Record<string, string> = {}): Promise<Shown> {
    return comeBack(browser, this.issuer.refuse(await this.openLate(browser), error, changes));
  }

  async api(browser: Browser): Promise<ApiClient> {
    return this.test.api.as((await browser.cookies())['__Host-gpurent']);
  }

  /** Returns the status of a request with the session of a browser: 200 or 401. */
  async status(browser: Browser): Promise<number> {
    return (await (await this.api(browser)).request('GET', '/v1/me')).status;
  }

  async memberships(browser: Browser): Promise<Member[]> {
    return (await (await this.api(browser)).get<{ memberships: Member[] }>('/v1/me')).memberships;
  }
}
