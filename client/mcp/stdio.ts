import { randomBytes } from 'node:crypto';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import type { Gpurent } from '../api/index.js';
import { createMcpServer } from './server.js';
import { runBySsh, type RunCommand } from './ssh.js';

export interface StdioOptions {
  /** The version of gpurent. */
  version: string;
  runCommand?: RunCommand;
  /** Ends it. */
  signal?: AbortSignal;
}

const SIGNING_KEY_BYTES = 32;

/**
 * Serves one client over standard input and output, with the rights of the credential of `gpurent`, until the client closes its end.
 * Standard output belongs to the protocol: write nothing else to it. Faults go to standard error.
 */
export function serveOverStdio(
  gpurent: Gpurent,
  { version, runCommand = runBySsh(), signal }: StdioOptions,
): Promise<void> {
  const signingKey = randomBytes(SIGNING_KEY_BYTES);
  const onFault = (error: unknown): void => console.error(error);
  return new Promise((resolve) => {
    const connection = serveStdio(() => createMcpServer(gpurent, { version, signingKey, runCommand, onFault }), {
      onerror: onFault,
    });
    process.stdin.once('end', resolve);
    signal?.addEventListener('abort', () => void connection.close().then(resolve), { once: true });
  });
}
