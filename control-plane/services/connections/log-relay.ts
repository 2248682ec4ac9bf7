import { withTimeout, type Clock } from '../../../shared/clock.js';
import type { LogChunk, LogLine } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import type { Ids } from '../../../shared/ids.js';
import type { AgentConnections } from './agent-connections.js';

/** Most lines of a workload that are kept. */
export const KEPT_LINES = 1000;
const KEPT_CHARS = 2 * 1024 * 1024;
const MAX_LINE_CHARS = 16_384;
const MAX_STAMP_CHARS = 64;
const FIRST_LINES_TIMEOUT_MS = 5_000;
const IDLE_MS = 30_000;
/** Limit for all workloads whose hosts are not connected. Their lines are kept because no host can send them again now. */
const KEPT_AWAY_CHARS = 64 * 1024 * 1024;
/** Shortest time between two requests for the same log: a stream that has ended is requested again, but not with every poll. */
const FOLLOW_AGAIN_MS = 3_000;

export interface FollowedWorkload {
  id: string;
  machineId: string;
  /** Identifies the run that is followed. A later start has another log stream. */
  run: string;
  isRunning: boolean;
}

interface Subscription extends FollowedWorkload {
  subscriptionId: string;
  lines: LogLine[];
  chars: number;
  /** The time stamp of the newest line. After an interruption the stream continues from here. */
  last: string;
  begunAt: number;
  polledAt: number;
  ended: boolean;
  caughtUp: Promise<void>;
  onCaughtUp: () => void;
}

/**
 * Keeps the last lines of workloads whose logs are being polled. A host follows each log once, however many clients poll it. Lines
 * that nobody has polled for 30 seconds are dropped.
 */
export class LogRelay {
  private readonly byInstance = new Map<string, Subscription>();
  private readonly byId = new Map<string, Subscription>();

  constructor(
    private readonly clock: Clock,
    private readonly ids: Ids,
    private readonly connections: AgentConnections,
  ) {}

  /** Returns up to 1,000 newest lines, oldest first; null if the host is not connected and no lines are kept. */
  async tail(workload: FollowedWorkload): Promise<readonly LogLine[] | null> {
    const held = this.byInstance.get(workload.id);
    const current = held && !this.isOutdated(held, workload) ? held : (this.follow(workload, held) ?? held);
    if (!current) return null;
    current.polledAt = this.clock.monotonic();
    await withTimeout(this.clock, FIRST_LINES_TIMEOUT_MS, current.caughtUp, () => undefined);
    return current.lines;
  }

  private isOutdated(held: Subscription, { run, isRunning }: FollowedWorkload): boolean {
    return held.run !== run || (held.ended && isRunning && this.clock.monotonic() - held.begunAt >= FOLLOW_AGAIN_MS);
  }

  /**
   * Requests the log from the host, after the last line if lines of the same run are kept. Drops the earlier subscription only
   * after the request was sent, and returns undefined if it cannot be sent.
   */
  private follow(workload: FollowedWorkload, held: Subscription | undefined): Subscription | undefined {
    const subscriptionId = this.ids.uuid();
    const { lines, chars, last } = held?.run === workload.run ? held : { lines: [], chars: 0, last: '' };
    const request = { subscriptionId, instanceId: workload.id, tail: KEPT_LINES, since: last };
    if (!this.connections.send(workload.machineId, { message: { $case: 'logSubscribe', value: request } }))
      return undefined;
    this.forget(workload.id);
    let onCaughtUp = () => {};
    const caughtUp = new Promise<void>((resolve) => (onCaughtUp = resolve));
    const now = this.clock.monotonic();
    const state = { lines, chars, last, begunAt: now, polledAt: now, ended: false, caughtUp, onCaughtUp };
    const subscription: Subscription = { ...workload, subscriptionId, ...state };
    this.byInstance.set(workload.id, subscription);
    this.byId.set(subscriptionId, subscription);
    return subscription;
  }

  /** Takes lines from a host. Cancels a subscription on that host if it is unknown here or belongs to another host. */
  receive(machineId: string, chunk: LogChunk): void {
    const subscription = this.byId.get(chunk.subscriptionId);
    if (subscription?.machineId !== machineId) return this.unsubscribe(machineId, chunk.subscriptionId);
    for (const { at, text } of chunk.lines)
      keep(subscription, { at: at.slice(0, MAX_STAMP_CHARS), text: text.slice(0, MAX_LINE_CHARS) });
    subscription.last = subscription.lines.at(-1)?.at ?? subscription.last;
    if (chunk.caughtUp || chunk.ended) subscription.onCaughtUp();
    if (chunk.ended) subscription.ended = true;
  }

  /** Ends the subscriptions of a host whose stream has closed. Lines stay readable; a poll after it connects asks again. */
  hostLost(machineId: string): void {
    for (const subscription of this.byId.values()) {
      if (subscription.machineId !== machineId) continue;
      subscription.onCaughtUp();
      subscription.ended = true;
    }
  }

  /**
   * Drops workloads that nobody polls any more. Lines of hosts that are not connected stay, up to 64 Mi characters in all, the
   * most recently polled first. Returns how many were dropped.
   */
  expire(): { ended: number } {
    const idle = [...this.byId.values()].filter(({ polledAt }) => this.clock.monotonic() - polledAt > IDLE_MS);
    let room = KEPT_AWAY_CHARS;
    const ended = idle
      .sort((a, b) => b.polledAt - a.polledAt)
      .filter(({ machineId, chars }) => this.connections.isConnected(machineId) || (room -= chars) < 0);
    for (const { id } of ended) this.forget(id);
    return { ended: ended.length };
  }

  private forget(instanceId: string): void {
    const subscription = this.byInstance.get(instanceId);
    if (!subscription) return;
    this.byInstance.delete(instanceId);
    this.byId.delete(subscription.subscriptionId);
    if (!subscription.ended) this.unsubscribe(subscription.machineId, subscription.subscriptionId);
  }

  private unsubscribe(machineId: string, subscriptionId: string): void {
    this.connections.send(machineId, { message: { $case: 'logUnsubscribe', value: { subscriptionId } } });
  }
}

function keep(subscription: Subscription, line: LogLine): void {
  const { lines } = subscription;
  lines.push(line);
  subscription.chars += line.text.length;
  while (lines.length > KEPT_LINES || subscription.chars > KEPT_CHARS)
    subscription.chars -= lines.shift()?.text.length ?? 0;
}
