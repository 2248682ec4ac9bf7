import { execFile } from 'node:child_process';

const TIMEOUT_S = 5;
const OUTPUT_BYTES = 16 * 1024;
/** The user and group without rights. */
const NOBODY = 65_534;
const KEY = /^\S+ (ssh-ed25519 [A-Za-z0-9+/]{68})$/m;

/**
 * Asks the SSH server at an address of this host for its ed25519 host key. Returns it as in a known_hosts file (`ssh-ed25519 AAAA...`);
 * empty: there is none. A renter's server can answer anything, so a process without rights reads it (ssh-keyscan). Rejects if that is not
 * installed.
 */
export function hostKeyAt(address: string, port: number): Promise<string> {
  const isRoot = process.getuid?.() === 0;
  const options = {
    ...({ timeout: 2 * TIMEOUT_S * 1_000, killSignal: 'SIGKILL', maxBuffer: OUTPUT_BYTES } as const),
    ...(isRoot ? { uid: NOBODY, gid: NOBODY } : {}),
  };
  const args = ['-T', String(TIMEOUT_S), '-t', 'ed25519', '-p', String(port), address];
  return new Promise((resolve, reject) => {
    execFile('ssh-keyscan', args, options, (error, stdout) => {
      if ((error as NodeJS.ErrnoException | null)?.code === 'ENOENT') reject(error);
      else resolve(KEY.exec(stdout)?.[1] ?? '');
    });
  });
}
