import { userBeingLinked } from '../../services/identity/companies/asserted-accounts.js';
import { hasIssuers, listedIssuers } from '../../services/identity/companies/issuers.js';
import type { App } from '../../services/parts/parts.js';
import { html, type Part } from './html.js';
import { pathTo, type View } from './pages.js';
import { COMPANY, ownPath } from './return-to.js';

/** The page with the linked accounts of a user, and the one that links an account. */
export const COMPANIES = '/account/companies';
export const LINK_COMPANY = '/account/companies/link';

/** Returns the path that leads to the sign-in of a company, also for a proof (`again`). It is a link: browsers let no form lead to another server. */
export function startOf(
  id: string,
  parameters: { return_to?: string | undefined; link?: 'yes'; again?: 'yes' },
): string {
  return pathTo(`${COMPANY}/${encodeURIComponent(id)}/start`, parameters);
}

/** Returns the part of the page to sign in with the companies; nothing if there are none. */
export function companiesToSignInWith({ platform, values }: View): Part {
  if (!hasIssuers(platform)) return null;
  const return_to = ownPath(values['return_to']);
  const companies = listedIssuers(platform);
  return html`<h2>With your company</h2>
    <ul class="companies">
      ${companies.map(({ id, name }) => html`<li><a href="${startOf(id, { return_to })}">Sign in with ${name}</a></li>`)}
      <li>
        <a href="${pathTo(COMPANY, { return_to })}"
          >Sign in with ${companies.length > 0 ? 'another' : 'your'} company</a
        >
      </li>
    </ul>`;
}

/**
 * Returns the user whom a company has asserted to this browser, if a sign-in leads to the page that links the account: then the password
 * counts once more, also where the company has switched it off.
 */
export function userBeingLinkedBy(
  platform: App,
  return_to: string | undefined,
  browser: string | undefined,
): string | undefined {
  const path = ownPath(return_to);
  if (!path?.startsWith(`${LINK_COMPANY}?`)) return undefined;
  const token = new URLSearchParams(path.slice(LINK_COMPANY.length)).get('token');
  return token === null ? undefined : userBeingLinked(platform, token, browser);
}
