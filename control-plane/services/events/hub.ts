import { callEach } from '../../../shared/call-each.js';
import type { Platform } from '../system/platform.js';

type Listener = () => void;

/** Tells readers that a stream has new events, once they are durable. */
export class EventHub {
  private readonly listeners = new Map<string, Set<Listener>>();
  private readonly changed = new Set<string>();

  constructor(private readonly platform: Pick<Platform, 'store' | 'defer'>) {
    platform.store.onChange('events', (stream) => this.note(stream));
  }

  /** Calls `listener` after new events of the stream, in a turn of the event loop of its own. Returns a function that ends this. */
  listen(stream: string, listener: Listener): () => void {
    const others = this.listeners.get(stream) ?? new Set();
    this.listeners.set(stream, others.add(listener));
    return () => {
      others.delete(listener);
      if (others.size === 0 && this.listeners.get(stream) === others) this.listeners.delete(stream);
    };
  }

  private note(stream: string): void {
    if (!this.listeners.has(stream)) return;
    if (this.changed.size === 0) this.platform.defer(() => this.tell());
    this.changed.add(stream);
  }

  private tell(): void {
    const changed = [...this.changed];
    this.changed.clear();
    const listeners = changed.flatMap((stream) => [...(this.listeners.get(stream) ?? [])]);
    callEach(listeners);
  }
}
