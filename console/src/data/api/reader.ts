import { forgetDraftsOfOthers, giveUpPage } from './kept-drafts.js';
import type { Me } from './models.js';
import { sendOrganization } from './organization.js';

/** Somebody else than the one to whom it belongs is signed in: what is shown is loaded anew. */
export class SomebodyElseError extends Error {
  constructor() {
    super('Somebody else, or another organization, is signed in in this browser now: load the page anew.');
  }
}

let shown: { userId: string; organizationId: string | null } | undefined;
let channel: BroadcastChannel | undefined;

/**
 * Returns the answer about who is signed in, if what the page shows is theirs: it belongs to the first of whom it was told, and to their
 * organization. For anybody else the page is loaded anew, and SomebodyElseError is thrown.
 */
export function checkReader(me: Me): Me {
  const { user, active_organization_id: organizationId } = me;
  if (!shown) {
    shown = { userId: user.id, organizationId };
    channel?.postMessage(user.id);
    forgetDraftsOfOthers(user.id);
    sendOrganization(organizationId ?? undefined);
  } else if (shown.userId !== user.id || shown.organizationId !== organizationId) {
    giveUpPage();
    location.reload();
    throw new SomebodyElseError();
  }
  return me;
}

/** Calls as soon as another tab of this browser shows what belongs to another user. */
export function whenSomebodyElse(call: () => void): void {
  if (typeof BroadcastChannel === 'undefined') return;
  channel = new BroadcastChannel('gpurent.reader');
  channel.addEventListener('message', ({ data }: MessageEvent<string>) => {
    if (shown && data !== shown.userId) call();
  });
}
