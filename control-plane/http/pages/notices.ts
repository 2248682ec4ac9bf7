import { html, type Part } from './html.js';
import type { View } from './pages.js';

/** What a page says after something was done, by the word in its address: no text of the address is shown. */
const NOTICES: ReadonlyMap<string, string> = new Map([
  ['joined', 'You are a member of the organization now.'],
  ['password', 'Your password is changed. All your other sessions are ended.'],
  ['password-and-keys', 'Your password is changed. All your other sessions are ended, and your API keys are revoked.'],
  ['session-ended', 'The session is ended.'],
  ['sessions-ended', 'All your other sessions are ended.'],
  ['signed-out', 'You are signed out.'],
]);

/** Returns what the page says of what was done just before. */
export function noticeOf({ values }: View): Part {
  const notice = NOTICES.get(values['done'] ?? '');
  return notice !== undefined && html`<p class="notice" role="status">${notice}</p>`;
}
