import { stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import type { Clock, Timer } from '../../../shared/clock.js';
import type { DockerWatch } from '../workload.js';
import type { DataRootGuard } from './data-roots/data-root-guard.js';
import { LABEL } from './labels.js';
import { DEADLINE_MS, type Engine } from './engine.js';

/**
 * A Docker that hangs is reported within ten seconds: this time, the deadline for its answer and the way to the control
 * plane together.
 */
const PULSE_MS = 3_000;
const SILENT = 'Docker does not answer';

/** Watches Docker and its events about this host's containers. */
export class EngineWatch implements DockerWatch {
  constructor(
    private readonly engine: Engine,
    private readonly hostId: string,
    private readonly pidFile: string,
    private readonly dataRoot: Pick<DataRootGuard, 'confirm'>,
    private readonly clock: Clock,
  ) {}

  /** Returns whether Docker answers and shows the instances of this host; otherwise it counts as unavailable. */
  async isAvailable(): Promise<boolean> {
    if (!(await this.engine.isAvailable())) return false;
    return this.dataRoot.confirm().then(
      () => true,
      () => false,
    );
  }

  /** Returns the modification time of the file to which Docker writes its process id when it starts. */
  async startedAt(): Promise<number | null> {
    try {
      return Math.floor((await stat(this.pidFile)).mtimeMs);
    } catch {
      return null;
    }
  }

  async keepsWorkloads(): Promise<boolean> {
    return (await this.engine.recentInfo()).LiveRestoreEnabled;
  }

  get clockAheadMs(): number | undefined {
    return this.engine.clockAheadMs;
  }

  /** Rejects when the stream breaks, and when Docker does not answer: a Docker that hangs does not end its stream. */
  async events(onEvent: (instanceId: string) => void, signal: AbortSignal): Promise<void> {
    if (!(await this.engine.isAvailable())) throw new Error(SILENT);
    const filters = {
      type: ['container' as const],
      event: ['die', 'oom', 'destroy'],
      label: [`${LABEL.host}=${this.hostId}`],
    };
    const stream = (await this.engine.call('open its events', DEADLINE_MS.inspect, (docker) =>
      docker.getEvents({ filters }),
    )) as unknown as Readable;
    const stop = () => stream.destroy();
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    const pulse = this.feelPulse(() => stream.destroy(new Error(SILENT)));
    try {
      let text = '';
      for await (const chunk of stream) {
        const parts = (text + String(chunk)).split('\n');
        text = parts.pop() ?? '';
        for (const line of parts.filter(Boolean)) onEvent(instanceOf(line));
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      pulse.cancel();
      signal.removeEventListener('abort', stop);
      stop();
    }
  }

  /** Asks Docker repeatedly whether it answers, and calls `onSilence` once it does not. */
  private feelPulse(onSilence: () => void): Timer {
    let isOver = false;
    const askLater = () => this.clock.schedule(PULSE_MS, () => void ask());
    let timer = askLater();
    const ask = async () => {
      const answers = await this.engine.isAvailable();
      if (isOver) return;
      if (answers) timer = askLater();
      else onSilence();
    };
    return {
      cancel: () => {
        isOver = true;
        timer.cancel();
      },
    };
  }
}

function instanceOf(line: string): string {
  const event = JSON.parse(line) as { Actor?: { Attributes?: Record<string, string> } };
  return event.Actor?.Attributes?.[LABEL.instance] ?? '';
}
