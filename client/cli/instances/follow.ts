import type { Gpurent, Instance } from '../../api/index.js';
import { CliError } from '../errors/cli-error.js';
import { EXIT } from '../errors/exit-codes.js';
import { Progress } from '../output/progress.js';
import type { Terminal } from '../terminal/terminal.js';
import { nameOf } from './find.js';
import { wordsOf } from './words.js';

/** An event can be late, or lie beyond what a credential may read: so the instance itself is read from time to time, too. */
const LOOK_AGAIN_MS = 3_000;

/** Returns the id of the newest event, after which everything is still to come. */
export async function newestEvent(gpurent: Gpurent): Promise<string | undefined> {
  return (await gpurent.get('/v1/events', { params: { query: { limit: 1 } } })).last_id ?? undefined;
}

/**
 * Shows how an instance goes on until it has this status, and returns it. Throws a CliError if it goes to `error` or is gone instead, and
 * at Ctrl-C: then the instance goes on.
 */
export async function followUntil(
  gpurent: Gpurent,
  terminal: Terminal,
  changed: Instance,
  status: Instance['status'],
  after?: string,
): Promise<Instance> {
  const { id } = changed;
  const progress = new Progress(terminal);
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, terminal.interrupted]);
  const telling = tell(gpurent, progress, id, after, signal);
  let instance = changed;
  try {
    while (instance.status !== status) {
      const reason = whyNever(instance, status);
      if (reason) throw reason;
      await Promise.race([telling.next(), terminal.wait(LOOK_AGAIN_MS, signal)]);
      instance = await gpurent.get('/v1/instances/{id}', { params: { path: { id } } });
    }
    return instance;
  } catch (error) {
    if (!terminal.interrupted.aborted) throw error;
    const advice = `See how it goes on: gpurent show ${id}. Remove it: gpurent destroy ${id}`;
    throw new CliError(EXIT.interrupted, `${nameOf(instance)} is ${instance.status}, and goes on without you`, advice);
  } finally {
    progress.end();
    over.abort();
  }
}

/** Shows each event as it comes; `next` resolves with the one that is next. */
function tell(gpurent: Gpurent, progress: Progress, id: string, after: string | undefined, signal: AbortSignal) {
  let announce: () => void = () => undefined;
  let next = new Promise<void>((resolve) => (announce = resolve));
  const following = async () => {
    for await (const event of gpurent.events({ instanceId: id, signal, ...(after === undefined ? {} : { after }) })) {
      progress.show(wordsOf(event));
      announce();
      next = new Promise((resolve) => (announce = resolve));
    }
  };
  // Without events the instance is read all the same.
  following().catch(() => undefined);
  return { next: () => next };
}

function whyNever(instance: Instance, wanted: Instance['status']): CliError | undefined {
  const { status, error_code, error_message, id } = instance;
  const name = nameOf(instance);
  if (status === 'error') {
    const reason = [error_code, error_message].filter(Boolean).join(': ');
    const advice = `What it has written: gpurent logs ${id}. Remove it: gpurent destroy ${id}`;
    return new CliError(EXIT.failed, `${name} has failed: ${reason}`, advice);
  }
  const isGone = ['destroying', 'destroyed'].includes(status) && !['destroying', 'destroyed'].includes(wanted);
  if (isGone) return new CliError(EXIT.failed, `${name} is ${status}`, null);
  const hasFallenBack = error_code !== null && ['running', 'stopped'].includes(status);
  if (hasFallenBack)
    return new CliError(EXIT.failed, `${name} is ${status} again: ${error_code}: ${error_message ?? ''}`, null);
  return undefined;
}
