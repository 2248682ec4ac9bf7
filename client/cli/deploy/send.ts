import { ApiError, type Gpurent, type Instance } from '../../api/index.js';
import { CliError } from '../errors/cli-error.js';
import { EXIT } from '../errors/exit-codes.js';
import { explain } from '../errors/explain.js';
import type { Terminal } from '../terminal/terminal.js';
import type { Pending, PendingDeploys } from './pending.js';

const GO_ON = 'Go on with: gpurent deploy --resume (within 24 hours; nothing is deployed twice)';

/**
 * Sends a deploy with its key, which is noted until the answer is there. Throws ApiError for a refusal; a CliError if the answer is lost,
 * which says how to go on.
 */
export async function send(
  gpurent: Gpurent,
  terminal: Terminal,
  pendings: PendingDeploys,
  pending: Pending,
): Promise<Instance> {
  pendings.keep(pending);
  const init = { params: { header: { 'idempotency-key': pending.key } }, body: pending.body };
  try {
    const instance = await gpurent.post('/v1/instances', init);
    pendings.forget(pending);
    return instance;
  } catch (error) {
    if (terminal.interrupted.aborted)
      throw new CliError(EXIT.interrupted, 'interrupted before the answer: it may be deployed or not', GO_ON);
    if (isAnswer(error)) pendings.forget(pending);
    if (error instanceof ApiError && error.status <= 500) throw error;
    const { exitCode, message } = explain(error);
    throw new CliError(exitCode, message, GO_ON);
  }
}

const SAYS_NOTHING_OF_IT = [401, 403, 429];

/** Tells whether the control plane has looked at the deploy: otherwise an earlier request with its key may have deployed it. */
function isAnswer(error: unknown): boolean {
  if (!(error instanceof ApiError) || error.status >= 500 || error.code === 'UNEXPECTED_ANSWER') return false;
  return !SAYS_NOTHING_OF_IT.includes(error.status);
}
