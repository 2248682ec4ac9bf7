import type { QueryClient } from '@tanstack/react-query';

/**
 * Hides what is private when the page is left: the browser can keep it and show it again to whoever goes back, also after a sign-out. What
 * comes back is loaded anew.
 */
export function hideWhenLeft(root: HTMLElement, queries: QueryClient): void {
  window.addEventListener('pagehide', () => {
    root.hidden = true;
    queries.clear();
  });
  window.addEventListener('pageshow', ({ persisted }) => {
    if (persisted) location.reload();
  });
}
