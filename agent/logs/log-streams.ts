import { sleep, type Clock } from '../../shared/clock.js';
import { messageOf } from '../../shared/coded-error.js';
import type { LogChunk, LogSubscribe } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { Logger } from '../../shared/logger.js';
import type { Outbox } from '../link/outbox.js';
import type { LogLine, Runtime } from '../runtime/workload.js';

/** How many of the newest lines a subscription begins with, and how many it skips to when it is behind. */
const MOST_LINES = 1_000;
/** Long lines are skipped to in smaller numbers: sending them all would take so long that they are old, too. */
const MOST_SKIPPED_TO_CHARS = 512 * 1024;
/** A log is behind when it is sent this long after it was written. */
const BEHIND_MS = 1_000;
const MAX_SUBSCRIPTIONS = 256;
const MAX_CHUNK_LINES = 100;
const MAX_CHUNK_CHARS = 128 * 1024;
const CONGESTION_PAUSE_MS = 100;
const CHARS_PER_MS = 1_000;
/** The least time that a chunk counts for: even a small chunk costs its receiver something. */
const CHUNK_MS = 1;
/** How far logs may run ahead of that pace. */
const SLACK_MS = 2_000;

/** Follows the output of workloads for the control plane, with one Docker stream per subscription. */
export class LogStreams {
  private readonly active = new Map<string, AbortController>();
  /** When all chunks so far will have been sent at the pace of CHARS_PER_MS, in monotonic milliseconds. */
  private nextAt = -Infinity;

  constructor(
    private readonly runtime: Runtime,
    private readonly outbox: Outbox,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  subscribe(request: LogSubscribe): void {
    const { subscriptionId } = request;
    if (this.active.has(subscriptionId)) return;
    const isFull = this.active.size >= MAX_SUBSCRIPTIONS;
    const stop = new AbortController();
    this.active.set(subscriptionId, stop);
    (isFull ? Promise.resolve() : this.follow(request, stop.signal))
      .catch((error: unknown) =>
        this.logger.warn({ instanceId: request.instanceId }, `cannot read the log of a workload: ${messageOf(error)}`),
      )
      .then(() => this.end(subscriptionId, stop.signal))
      // After an unsubscribe there is nothing left to send.
      .catch(() => undefined)
      .finally(() => this.active.delete(subscriptionId));
  }

  unsubscribe(subscriptionId: string): void {
    this.active.get(subscriptionId)?.abort();
    this.active.delete(subscriptionId);
  }

  stopAll(): void {
    for (const subscriptionId of Array.from(this.active.keys())) this.unsubscribe(subscriptionId);
  }

  private async follow({ subscriptionId, instanceId, tail, since }: LogSubscribe, signal: AbortSignal): Promise<void> {
    const sent = new SentLines(since);
    const send = async (lines: LogLine[], caughtUp: boolean) => {
      const chunks = chunksOf(lines);
      for (const chunk of caughtUp ? [...chunks, []] : chunks) {
        const isLast = caughtUp && chunk.length === 0;
        await this.deliver({ subscriptionId, lines: chunk, caughtUp: isLast, ended: false }, signal);
      }
    };
    const existing = await this.runtime.tail(instanceId, Math.min(Math.max(tail, 1), MOST_LINES));
    await send(sent.resume()(existing), true);
    while (await this.followUntilBehind(instanceId, sent, (lines) => send(lines, false), signal));
  }

  /**
   * Sends the newest lines and what follows them. Returns true as soon as it is behind, so that the caller skips to the newest lines
   * by following anew; false at the end of the log. It always sends the lines with which it begins, however old they are.
   */
  private async followUntilBehind(
    instanceId: string,
    sent: SentLines,
    send: (lines: LogLine[]) => Promise<void>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const begunAt = this.clock.now();
    const unsent = sent.resume();
    for await (const lines of this.runtime.follow(instanceId, '', signal, sent.mostToSkipTo)) {
      const writtenAt = Date.parse(lines.at(-1)?.at ?? '');
      if (writtenAt >= begunAt && this.clock.now() - writtenAt > BEHIND_MS) return true;
      await send(unsent(lines));
    }
    return false;
  }

  /** Waits so that all logs of this host together are sent no faster than the control plane accepts them from one host. */
  private async pace({ lines }: LogChunk, signal: AbortSignal): Promise<void> {
    const chars = lines.reduce((sum, { text }) => sum + text.length, 0);
    const now = this.clock.monotonic();
    this.nextAt = Math.max(this.nextAt, now) + Math.max(chars / CHARS_PER_MS, CHUNK_MS);
    const waitMs = this.nextAt - now - SLACK_MS;
    if (waitMs > 0) await sleep(this.clock, waitMs, signal);
  }

  /** Sends a chunk, and waits while the stream is congested. */
  private async deliver(chunk: LogChunk, signal: AbortSignal): Promise<void> {
    await this.pace(chunk, signal);
    while (!signal.aborted && !this.outbox.logChunk(chunk)) await sleep(this.clock, CONGESTION_PAUSE_MS, signal);
  }

  private async end(subscriptionId: string, signal: AbortSignal): Promise<void> {
    await this.deliver({ subscriptionId, lines: [], caughtUp: true, ended: true }, signal);
  }
}

/** What was sent of a log, across skips. */
class SentLines {
  private lines = 1;
  private chars = 0;

  /** `last`: the time stamp of the line that was sent last; empty: none. */
  constructor(private last: string) {}

  /** Returns how many of the newest lines can be sent soon enough. */
  get mostToSkipTo(): number {
    const lines = Math.floor((MOST_SKIPPED_TO_CHARS * this.lines) / Math.max(this.chars, 1));
    return Math.max(Math.min(lines, MOST_LINES), 1);
  }

  /** Returns a function that takes batches of lines that begin anywhere. It returns what was not sent, after a note of what is left out. */
  resume(): (lines: LogLine[]) => LogLine[] {
    const since = this.last;
    let isFirst = true;
    return (lines) => {
      const [first] = lines;
      const isGap = isFirst && first !== undefined && since !== '' && first.at > since;
      isFirst = false;
      const unsent = lines.filter(({ at }) => at > since);
      this.add(unsent);
      return isGap ? [{ at: first.at, text: noteOfGap(since, first.at) }, ...unsent] : unsent;
    };
  }

  private add(lines: LogLine[]): void {
    if (lines.length === 0) return;
    this.last = lines.at(-1)?.at ?? this.last;
    this.lines = lines.length;
    this.chars = lines.reduce((sum, { text }) => sum + text.length, 0);
  }
}

function noteOfGap(from: string, to: string): string {
  const seconds = Math.max(Date.parse(to) - Date.parse(from), 1) / 1_000;
  return `[gpurent: ${seconds.toFixed(3)} s of output are left out here, because it is written faster than logs are sent]`;
}

function chunksOf(lines: LogLine[]): LogLine[][] {
  const chunks: LogLine[][] = [];
  let chars = 0;
  for (const line of lines) {
    const chunk = chunks.at(-1);
    chars += line.text.length;
    if (chunk && chunk.length < MAX_CHUNK_LINES && chars <= MAX_CHUNK_CHARS) {
      chunk.push(line);
    } else {
      chunks.push([line]);
      chars = line.text.length;
    }
  }
  return chunks;
}
