import { withTimeout, type Clock } from '../../shared/clock.js';
import type { LogChunk, LogLine } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { Ids } from '../../shared/ids.js';
import type { HostLinks } from './host-links.js';

const KEPT_LINES = 1000;
const FIRST_LINES_TIMEOUT_MS = 5_000;
const IDLE_MS = 30_000;

interface Subscription {
  id: string;
  instanceId: string;
  machineId: string;
  /** Names the run that is followed: a later start is another stream. */
  run: string;
  lines: string[];
  polledAt: number;
  ended: boolean;
  caughtUp: Promise<void>;
  onCaughtUp: () => void;
}

/**
 * The last lines of workloads whose logs are being polled. However often they are polled, a host follows each one once;
 * what nobody has polled for a while is forgotten.
 */
export class LogHub {
  private readonly subscriptions = new Map<string, Subscription>();

  constructor(
    private readonly clock: Clock,
    private readonly ids: Ids,
    private readonly hosts: HostLinks,
  ) {}

  /** Up to 1000 newest lines, oldest first; null when the host cannot be asked and nothing is held. */
  async tail(instance: { id: string; machineId: string; run: string }): Promise<readonly string[] | null> {
    const held = this.subscriptions.get(instance.id);
    const current = held?.run === instance.run ? held : this.follow(instance);
    if (!current) return null;
    current.polledAt = this.clock.monotonic();
    await withTimeout(this.clock, FIRST_LINES_TIMEOUT_MS, current.caughtUp, () => undefined);
    return current.lines;
  }

  private follow({ id, machineId, run }: { id: string; machineId: string; run: string }): Subscription | undefined {
    this.forget(id);
    const subscriptionId = this.ids.uuid();
    const request = { subscriptionId, instanceId: id, tail: KEPT_LINES, since: '' };
    if (!this.hosts.send(machineId, { message: { $case: 'logSubscribe', value: request } })) return undefined;
    let onCaughtUp = () => {};
    const caughtUp = new Promise<void>((resolve) => (onCaughtUp = resolve));
    const polledAt = this.clock.monotonic();
    const subscription = {
      id: subscriptionId,
      instanceId: id,
      machineId,
      run,
      lines: [],
      polledAt,
      ended: false,
      caughtUp,
      onCaughtUp,
    };
    this.subscriptions.set(id, subscription);
    return subscription;
  }

  /** Lines from a host. A subscription that is not held, or not this host's, is ended there. */
  receive(machineId: string, chunk: LogChunk): void {
    const subscription = [...this.subscriptions.values()].find(({ id }) => id === chunk.subscriptionId);
    if (subscription?.machineId !== machineId) return this.unsubscribe(machineId, chunk.subscriptionId);
    subscription.lines.push(...chunk.lines.map((line: LogLine) => line.text));
    subscription.lines.splice(0, subscription.lines.length - KEPT_LINES);
    if (chunk.caughtUp || chunk.ended) subscription.onCaughtUp();
    if (chunk.ended) subscription.ended = true;
  }

  /** A host's stream has broken: its lines stay readable, and the next poll after it is back asks anew. */
  hostLost(machineId: string): void {
    for (const subscription of this.subscriptions.values()) {
      if (subscription.machineId !== machineId) continue;
      subscription.onCaughtUp();
      subscription.ended = true;
    }
  }

  hostBack(machineId: string): void {
    for (const { instanceId, machineId: owner, ended } of [...this.subscriptions.values()]) {
      if (owner === machineId && ended) this.subscriptions.delete(instanceId);
    }
  }

  /** Ends what nobody polls any more. Answers how many. */
  expire(): { ended: number } {
    const idle = [...this.subscriptions.values()].filter(({ polledAt }) => this.clock.monotonic() - polledAt > IDLE_MS);
    for (const { instanceId } of idle) this.forget(instanceId);
    return { ended: idle.length };
  }

  private forget(instanceId: string): void {
    const subscription = this.subscriptions.get(instanceId);
    if (!subscription) return;
    this.subscriptions.delete(instanceId);
    if (!subscription.ended) this.unsubscribe(subscription.machineId, subscription.id);
  }

  private unsubscribe(machineId: string, subscriptionId: string): void {
    this.hosts.send(machineId, { message: { $case: 'logUnsubscribe', value: { subscriptionId } } });
  }
}
