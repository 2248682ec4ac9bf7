import { pause } from './pause.js';

/** How often a tab that is seen asks whether the one that leads is awake. */
const ASK_MS = 15_000;
/** How long a tab waits after a turn that was taken from it, or did not come. */
const AGAIN_MS = 1_000;
const ASLEEP = new Error('the tab that leads is silent');

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
 * tab to sleep. Ends once the tab has led to its end, or the signal is aborted. Where a browser has no locks, as without TLS, or refuses
 * them, each tab leads for itself.
 */
export async function inOneTab<Message>(shared: Shared<Message>, signal: AbortSignal): Promise<void> {
  // The types know only browsers that have them.
  const locks = (navigator as Partial<Navigator>).locks;
  if (!locks || typeof BroadcastChannel === 'undefined') return shared.lead(shared.hear, signal);
  const tab = new Tab(shared, locks);
  try {
    for (let turn = await tab.takeTurn(signal, false); turn !== 'ended' && !signal.aborted;) {
      await pause(AGAIN_MS, signal);
      turn = await tab.takeTurn(signal, turn === 'asleep');
    }
  } catch {
    await shared.lead(shared.hear, signal);
  } finally {
    tab.close();
  }
}

class Tab<Message> {
  private readonly channel: BroadcastChannel;
  private isLeading = false;
  private isAnswered = true;

  constructor(
    private readonly shared: Shared<Message>,
    private readonly locks: LockManager,
  ) {
    this.channel = new BroadcastChannel(shared.name);
    this.channel.onmessage = ({ data }: MessageEvent<Message | null>) => {
      if (data !== null) return this.hear(data);
      if (this.isLeading) this.channel.postMessage(shared.latest());
    };
    this.ask();
  }

  close(): void {
    this.channel.close();
  }

  /** Waits until it is this tab's turn, or takes it, and leads. `lost`: another tab has taken it; `asleep`: the tab that leads is silent. */
  async takeTurn(signal: AbortSignal, steal: boolean): Promise<'ended' | 'lost' | 'asleep'> {
    const turn = new AbortController();
    const either = AbortSignal.any([signal, turn.signal]);
    const watch = setInterval(() => {
      if (!this.isAwake()) turn.abort(ASLEEP);
    }, ASK_MS);
    const tell = (message: Message) => {
      // Another tab may lead by now.
      if (!either.aborted) this.tell(message);
    };
    const held = async () => {
      this.isLeading = true;
      await this.shared.lead(tell, either);
    };
    try {
      // A browser refuses a signal beside `steal`, which waits for nobody.
      await this.locks.request(this.shared.name, steal ? { steal } : { signal: either }, held);
      return turn.signal.aborted ? 'lost' : 'ended';
    } catch (error) {
      if (error === ASLEEP) return 'asleep';
      if (error instanceof DOMException && error.name === 'AbortError') return 'lost';
      throw error;
    } finally {
      clearInterval(watch);
      this.isLeading = false;
      this.isAnswered = true;
      // What was taken from this tab goes on here until then.
      turn.abort();
    }
  }

  /** Returns false if the tab that leads has not answered since the last call. Browsers slow down tabs that are not seen: they do not ask. */
  private isAwake(): boolean {
    if (this.isLeading || document.hidden) return (this.isAnswered = true);
    if (!this.isAnswered) return false;
    this.isAnswered = false;
    this.ask();
    return true;
  }

  private ask(): void {
    this.channel.postMessage(null);
  }

  private hear(message: Message): void {
    this.isAnswered = true;
    this.shared.hear(message);
  }

  private tell(message: Message): void {
    this.shared.hear(message);
    this.channel.postMessage(message);
  }
}
