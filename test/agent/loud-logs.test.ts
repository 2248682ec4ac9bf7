import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Outbox } from '../../agent/link/outbox.js';
import { LogStreams } from '../../agent/logs/log-streams.js';
import type { LogLine, Runtime } from '../../agent/runtime/workload.js';
import type { LogChunk } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { silentLogger } from '../../shared/logger.js';
import { ManualClock } from '../harness/manual-clock.js';

const TICK_MS = 10;
/** Lines that Docker hands over at once. */
const BATCH = 30;

/** A log that is followed while time passes. */
class FollowedLog {
  readonly sent: { line: LogLine; ageMs: number }[] = [];
  isCongested = false;
  /** How many lines each follower began with, at most. */
  readonly began: number[] = [];
  private readonly clock = new ManualClock();
  private readonly written: LogLine[] = [];
  private readonly streams: LogStreams;

  constructor() {
    const outbox = { logChunk: (chunk: LogChunk) => this.take(chunk) };
    const runtime = {
      tail: async (_: string, count: number) => this.written.slice(-count),
      follow: (_: string, since: string, signal: AbortSignal, newest: number) => this.read(since, signal, newest),
    };
    this.streams = new LogStreams(runtime as unknown as Runtime, outbox as unknown as Outbox, this.clock, silentLogger);
  }

  follow(since = ''): void {
    this.streams.subscribe({ subscriptionId: 's', instanceId: 'i', tail: 1_000, since });
  }

  /** Time passes; in each tick, lines of this length are written. */
  async pass(ms: number, linesATick: number, chars = 1_000): Promise<void> {
    for (let passed = 0; passed < ms; passed += TICK_MS) {
      for (let line = 0; line < linesATick; line++) this.write('x'.repeat(chars));
      this.clock.advance(TICK_MS);
      for (let turn = 0; turn < 20; turn++) await setImmediate();
    }
  }

  write(text: string): LogLine {
    const at = new Date(this.clock.now()).toISOString();
    const line = { at: at.replace('Z', `${String(this.written.length % 1_000_000).padStart(6, '0')}Z`), text };
    this.written.push(line);
    return line;
  }

  get texts(): string[] {
    return this.sent.map(({ line }) => line.text);
  }

  get notes(): string[] {
    return this.texts.filter((text) => text.startsWith('[gpurent: '));
  }

  stop(): void {
    this.streams.stopAll();
  }

  private take({ lines }: LogChunk): boolean {
    if (this.isCongested) return false;
    for (const line of lines) this.sent.push({ line, ageMs: this.clock.now() - Date.parse(line.at) });
    return true;
  }

  private async *read(since: string, signal: AbortSignal, newest: number): AsyncGenerator<LogLine[]> {
    this.began.push(newest);
    for (let next = Math.max(this.written.length - newest, 0); !signal.aborted;) {
      const lines = this.written.slice(next, next + BATCH).filter(({ at }) => at > since);
      next = Math.min(next + BATCH, this.written.length);
      if (lines.length > 0) yield lines;
      else await setImmediate();
    }
  }
}

describe('a log', () => {
  it.each([
    [100, 1_000],
    [10, 10_000],
  ])('of 10 MB a second, in %i lines of %i characters a tick, is shown as it is now', async (lines, chars) => {
    const [log, began] = [new FollowedLog(), new Date(new ManualClock().now())];
    log.follow();
    await log.pass(10_000, lines, chars);
    log.stop();
    // Beyond the burst with which it may begin.
    expect(Math.max(...log.sent.map(({ ageMs }) => ageMs))).toBeLessThan(3_000);
    expect(log.sent.at(-1)?.line.at.slice(0, 18)).toBe(began.toISOString().slice(0, 18));
    expect(log.sent.length).toBeGreaterThan((5 * 1_000_000) / chars);
    expect(log.notes.length).toBeGreaterThan(3);
    expect(log.notes[0]).toMatch(/^\[gpurent: \d+\.\d{3} s of output are left out here/);
    expect(Math.max(...log.began)).toBeLessThanOrEqual(1_000);
    const stamps = log.sent.map(({ line }) => line.at);
    expect(stamps).toEqual(stamps.toSorted());
  });

  it('that is sent late, but is short, is sent whole and once', async () => {
    const log = new FollowedLog();
    log.follow();
    await log.pass(100, 0);
    log.isCongested = true;
    const lines = [];
    for (let line = 0; line < 200; line++) {
      lines.push(`line ${line}`);
      log.write(`line ${line}`);
      await log.pass(50, 0);
    }
    log.isCongested = false;
    await log.pass(3_000, 0);
    log.stop();
    expect(log.texts).toEqual(lines);
  });

  it('that was written while nobody followed it begins with a note where more than its newest lines is missing', async () => {
    const log = new FollowedLog();
    const first = log.write('first');
    for (let line = 0; line < 1_500; line++) log.write('more');
    log.follow(first.at);
    await log.pass(2_000, 0);
    log.stop();
    expect(log.notes).toHaveLength(1);
    expect(log.texts[0]).toBe(log.notes[0]);
    expect(log.texts).toHaveLength(1_001);
  });

  it('has no note where nothing is missing', async () => {
    const log = new FollowedLog();
    const first = log.write('first');
    log.write('second');
    log.follow(first.at);
    await log.pass(2_000, 1);
    log.stop();
    expect(log.notes).toEqual([]);
    expect(log.texts[0]).toBe('second');
    expect(log.texts).toHaveLength(201);
  });
});
