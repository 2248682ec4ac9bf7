/** How often a tab that is seen asks whether the one that leads is awake. */
const ASK_MS = 15_000;

/** What the tabs of a browser with the same `name` do together. */
interface Shared<Message> {
  /** A name for who they are and what it is about. */
  name: string;
  /** What one of them does until the signal is aborted; `tell` has every tab hear a message, itself too. */
  lead: (tell: (message: Message) => void, signal: AbortSignal) => Promise<void>;
  hear: (message: Message) => void;
  /** What a tab is told that has just come. */
  latest: () => Message;
}

/**
 * Has one tab lead, and every tab hear what it tells. Once it is closed another one leads; so it does if the browser has put the leading
 * tab to sleep. Ends once the tab has led to its end, or the signal is aborted. Where a browser has no locks, as without TLS, each tab
 * leads for itself.
 */
export async function inOneTab<Message>(shared: Shared<Message>, signal: AbortSignal): Promise<void> {
  const { name, lead, hear, latest } = shared;
  // The types know only browsers that have them.
  const locks = (navigator as Partial<Navigator>).locks;
  if (!locks || typeof BroadcastChannel === 'undefined') return lead(hear, signal);
  const channel = new BroadcastChannel(name);
  const ask = () => channel.postMessage(null);
  const tab = { isLeading: false, isAnswered: true };
  channel.onmessage = ({ data }: MessageEvent<Message | null>) => {
    if (data === null) return tab.isLeading ? channel.postMessage(latest()) : undefined;
    tab.isAnswered = true;
    hear(data);
  };
  const tell = (message: Message) => {
    hear(message);
    channel.postMessage(message);
  };
  ask();
  for (let steal = false; !signal.aborted;) {
    const turn = new AbortController();
    const watch = setInterval(() => {
      if (tab.isLeading || document.hidden) return void (tab.isAnswered = true);
      if (!tab.isAnswered) return turn.abort();
      tab.isAnswered = false;
      ask();
    }, ASK_MS);
    const either = AbortSignal.any([signal, turn.signal]);
    const held = async () => {
      tab.isLeading = true;
      await lead(tell, either);
    };
    try {
      // A browser refuses a signal beside `steal`, which waits for nobody.
      await locks.request(name, steal ? { steal } : { signal: either }, held);
      return channel.close();
    } catch {
      // Its turn did not come in time: it takes it. Or another tab has taken it from this one, which waits again.
      steal = !tab.isLeading && turn.signal.aborted;
    } finally {
      tab.isLeading = false;
      tab.isAnswered = true;
      turn.abort();
      clearInterval(watch);
    }
  }
  channel.close();
}
