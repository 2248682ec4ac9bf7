const KEY = 'gpurent.reloaded';
const AGAIN_MS = 60_000;

/** Loads the page anew if a part of it is gone: the control plane has another release since the page was opened. */
export function reloadForNewRelease(): void {
  window.addEventListener('vite:preloadError', (event) => {
    // A part that is missing after a reload, too, is an error, which the page shows.
    if (Date.now() - Number(sessionStorage.getItem(KEY) ?? 0) < AGAIN_MS) return;
    event.preventDefault();
    sessionStorage.setItem(KEY, String(Date.now()));
    location.reload();
  });
}
