import { html, type Part } from './html.js';
import type { View } from './pages.js';

/** What a page says after something was done, by the word in its address: no text of the address is shown. */
const NOTICES: ReadonlyMap<string, string> = new Map([
  ['address-mailed', 'A mail with a link is on its way: open it to confirm the address and create the account.'],
  ['device-approved', 'The program is signed in within seconds. It is among your sessions, where you can end it.'],
  ['device-denied', 'The program was denied, and cannot sign in.'],
  ['company-another', 'Another account than yours is signed in at your company. Sign in again with yours.'],
  [
    'company-refused',
    'Your company has refused your account, so your sessions are ended and you have left its organizations.',
  ],
  ['company-linked', 'The accounts are linked: you can sign in at the company from now on.'],
  ['company-unlinked', 'The account at the company is not linked any more.'],
  ['factor-added', 'The second factor is added.'],
  ['factor-removed', 'The second factor is removed.'],
  ['joined', 'You are a member of the organization now.'],
  ['link-mailed', 'If the address has an account, a mail with a link is on its way. It works for an hour.'],
  ['password', 'Your password is changed. All your other sessions are ended.'],
  ['password-and-keys', 'Your password is changed. All your other sessions are ended, and your API keys are revoked.'],
  ['password-reset', 'Your password is changed, and all your sessions are ended. Sign in with the new one.'],
  ['removal-cancelled', 'The removal is cancelled. Change your password if somebody else may know it.'],
  ['session-ended', 'The session is ended.'],
  ['sessions-ended', 'All your other sessions are ended.'],
  ['signed-out', 'You are signed out.'],
]);

/** Returns what the page says of what was done just before. */
export function noticeOf({ values }: View): Part {
  const notice = NOTICES.get(values['done'] ?? '');
  return notice !== undefined && html`<p class="notice" role="status">${notice}</p>`;
}
