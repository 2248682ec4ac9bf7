import { stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import type { DockerWatch } from '../workload.js';
import type { DataRootGuard } from './data-root-guard.js';
import { LABEL } from './labels.js';
import { DEADLINE_MS, type Engine } from './engine.js';

/** Docker's stream of events about this host's containers. */
export class EngineWatch implements DockerWatch {
  constructor(
    private readonly engine: Engine,
    private readonly hostId: string,
    private readonly pidFile: string,
    private readonly dataRoot: Pick<DataRootGuard, 'confirm'>,
  ) {}

  /** Whether it answers, and for this host: one that shows none of its instances is as good as away. */
  async isAvailable(): Promise<boolean> {
    if (!(await this.engine.isAvailable())) return false;
    return this.dataRoot.confirm().then(
      () => true,
      () => false,
    );
  }

  /** Docker writes its process id when it starts. */
  async startedAt(): Promise<number | null> {
    try {
      return Math.floor((await stat(this.pidFile)).mtimeMs);
    } catch {
      return null;
    }
  }

  async keepsWorkloads(): Promise<boolean> {
    return (await this.engine.info()).LiveRestoreEnabled;
  }

  async events(onEvent: (instanceId: string) => void, signal: AbortSignal): Promise<void> {
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
      signal.removeEventListener('abort', stop);
      stop();
    }
  }
}

function instanceOf(line: string): string {
  const event = JSON.parse(line) as { Actor?: { Attributes?: Record<string, string> } };
  return event.Actor?.Attributes?.[LABEL.instance] ?? '';
}
