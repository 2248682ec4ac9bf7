import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { SetupError, messageOf } from './coded-error.js';

const run = promisify(execFile);
const PATIENCE_MS = 10_000;

/**
 * Tells systemd that this program is ready, if its unit waits for that. `socket`: NOTIFY_SOCKET of the environment. Throws
 * SetupError if that fails, because systemd would wait for ever.
 */
export async function tellReady(socket: string | undefined): Promise<void> {
  if (socket === undefined) return;
  try {
    await run('systemd-notify', ['--ready'], { timeout: PATIENCE_MS });
  } catch (error) {
    const reason = (error as { stderr?: string }).stderr?.trim() || messageOf(error);
    throw new SetupError(`systemd cannot be told that this program is ready: ${reason}`, { cause: error });
  }
}
