import { endDrafts } from '../data/api/kept-drafts.js';

/**
 * Hides what is private when the page is left: the browser can keep it and show it again to whoever goes back, also after a sign-out. What
 * comes back is loaded anew. Hides all of the page, since dialogs and menus stand beside its root.
 */
export function hideWhenLeft(): void {
  window.addEventListener('pagehide', () => {
    document.body.hidden = true;
  });
  window.addEventListener('pageshow', ({ persisted }) => {
    if (persisted) location.reload();
  });
}

/** Goes to the sign-in after the session was ended: nothing that was typed stays in the tab. */
export function leaveSignedOut(): void {
  endDrafts();
  location.assign('/sign-in');
}
