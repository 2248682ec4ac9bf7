import { query } from '../../control-plane/store/sql.js';
import { Browser, type Shown } from './browser.js';
import type { TestControlPlane } from './control-plane.js';

/** What issuers know the control plane by. */
export const CLIENT = { client_id: 'gpurent', client_secret: 'a secret of the client' };

/** Sets the sign-in of a company as an operator does. */
export async function setCompany(
  test: TestControlPlane,
  issuer: string,
  {
    id = 'acme',
    domains = [{ domain: 'acme.example' }] as object[],
    ...rest
  }: Record<string, unknown> & { id?: string } = {},
): Promise<void> {
  const settings = { name: 'Acme', issuer, ...CLIENT, listed: true, domains, ...rest };
  const { status, body } = await test.operator.request('PUT', `/v1/operator/issuers/${id}`, settings);
  if (status !== 200) throw new Error(`the issuer is refused: ${JSON.stringify(body)}`);
}

/** Links an account at a company to a user, as if it had been linked on the pages, and returns the id of the link. */
export function linkedAccount(
  { core, clock }: TestControlPlane,
  { userId, email }: { userId: string; email: string },
): string {
  const { store, ids } = core.platform;
  const identity = { id: ids.uuid(), user_id: userId, issuer: 'https://issuer.example', subject: ids.uuid(), email };
  const row = { ...identity, created_at: clock.now(), last_used_at: null };
  store.transact((tx) => tx.run(query.insertInto('identities').values(row)));
  return identity.id;
}

export function browserAt(test: TestControlPlane): Browser {
  const { port } = new URL(test.url);
  return new Browser(Number(port), `http://localhost:${port}`);
}

/** Where an issuer sends browsers back. */
export function returnUrl(test: TestControlPlane, id = 'acme'): string {
  return `http://localhost:${new URL(test.url).port}/sign-in/company/${id}/return`;
}

/** Begins a sign-in, and returns the address at the issuer to which the browser is sent. */
export async function begin(browser: Browser, id = 'acme', parameters = ''): Promise<string> {
  const sent = await browser.send(`/sign-in/company/${id}/start${parameters}`, { isNavigation: true });
  if (sent.status !== 303) throw new Error(`the start answers ${sent.status}: ${sent.text}`);
  return sent.headers.location ?? '';
}

/** Comes back from the issuer: a navigation that another site has begun. */
export function comeBack(browser: Browser, address: string): Promise<Shown> {
  return browser.open(address, { from: 'http://issuer.example' });
}
