import type { WorkloadSpec } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import type { Clock, Timer } from '../../../shared/clock.js';
import { Failure } from '../../domain/failure.js';
import type { OnProgress } from '../workload.js';
import type { ImageDefaults } from './container-options.js';
import { DEADLINE_MS, reasonOf, statusOf, type Engine } from './engine.js';

interface PullEvent {
  status?: string;
  id?: string;
  error?: string;
  progressDetail?: { current?: number; total?: number };
}

/** Pulls the image unless the host has it. Throws Failure IMAGE_UNAVAILABLE with Docker's reason. */
export async function fetchImage(
  engine: Engine,
  clock: Clock,
  spec: WorkloadSpec,
  onProgress: OnProgress,
  signal: AbortSignal,
): Promise<void> {
  if (!spec.registry && (await readImage(engine, spec.image))) return;
  onProgress('pulling', `pulling ${spec.image}`);
  try {
    await pull(engine, clock, spec, onProgress, signal);
  } catch (error) {
    if (signal.aborted || (error instanceof Failure && error.code === 'DOCKER_UNREACHABLE')) throw error;
    throw new Failure('IMAGE_UNAVAILABLE', `the image ${spec.image} cannot be pulled: ${reasonOf(error)}`, {
      cause: error,
    });
  }
  onProgress('pulled', `pulled ${spec.image}`);
}

/** What the image says of itself; undefined when the host does not have it. */
export async function readImage(engine: Engine, name: string): Promise<ImageDefaults | undefined> {
  try {
    const { Config } = await engine.call('', 'inspect the image', DEADLINE_MS.inspect, (docker) =>
      docker.getImage(name).inspect(),
    );
    const list = (value: string | string[] | undefined) => (value === undefined ? [] : [value].flat());
    return { entrypoint: list(Config.Entrypoint), command: list(Config.Cmd), user: Config.User };
  } catch (error) {
    if (statusOf(error) === 404) return undefined;
    throw error;
  }
}

async function pull(
  engine: Engine,
  clock: Clock,
  spec: WorkloadSpec,
  onProgress: OnProgress,
  signal: AbortSignal,
): Promise<void> {
  const name = /[:@][^/]+$/.test(spec.image) ? spec.image : `${spec.image}:latest`;
  const options = spec.registry ? { authconfig: { ...spec.registry, serveraddress: registryOf(name) } } : {};
  const stream = await engine.call('', 'begin the pull', DEADLINE_MS.pullSilence, (docker) =>
    docker.pull(name, options),
  );
  const progress = new PullProgress(onProgress);
  await new Promise<void>((resolve, reject) => {
    let silence: Timer;
    const end = (error: Error | null) => {
      silence.cancel();
      signal.removeEventListener('abort', onAbort);
      if (error) (stream as unknown as { destroy(): void }).destroy();
      if (error) reject(error);
      else resolve();
    };
    const onAbort = () => end(signal.reason as Error);
    const watch = () =>
      clock.schedule(DEADLINE_MS.pullSilence, () => end(new Error('the registry sent nothing for a minute')));
    silence = watch();
    signal.addEventListener('abort', onAbort, { once: true });
    engine.docker.modem.followProgress(
      stream,
      (error) => end(error),
      (event: PullEvent) => {
        silence.cancel();
        silence = watch();
        progress.add(event);
      },
    );
  });
}

function registryOf(image: string): string {
  const [first = ''] = image.split('/');
  return image.includes('/') && /[.:]|^localhost$/.test(first) ? first : 'https://index.docker.io/v1/';
}

/** Tells of every tenth part of all layers together. */
class PullProgress {
  private readonly layers = new Map<string, { current: number; total: number }>();
  private told = 0;

  constructor(private readonly onProgress: OnProgress) {}

  add({ status, id, progressDetail }: PullEvent): void {
    const total = progressDetail?.total ?? 0;
    if (status !== 'Downloading' || !id || total === 0) return;
    this.layers.set(id, { current: progressDetail?.current ?? 0, total });
    const layers = [...this.layers.values()];
    const sum = (pick: (layer: { current: number; total: number }) => number) =>
      layers.reduce((all, layer) => all + pick(layer), 0);
    const tenth = Math.floor((10 * sum((layer) => layer.current)) / sum((layer) => layer.total));
    if (tenth <= this.told) return;
    this.told = tenth;
    this.onProgress('pulling', `${tenth * 10} % of the image pulled`);
  }
}
