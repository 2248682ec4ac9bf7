import { writeFileSync } from 'node:fs';
import { HOUR_MS, type AlertCase } from './cases.js';

/** What is written here is what `gpurent-copies` writes: test/check/copies.test.ts. */
export const oldCopy: AlertCase = {
  how: 'a server takes no copies any more, and the folder here has its copy',
  summary: /^The newest copy in sftp:\/\/copies\.example\/gpurent is older than 30 hours, or there is none$/,
  async provoke({ controlPlane: test }) {
    const ago = (ms: number) => Math.floor((test.clock.now() - ms) / 1_000);
    const write = (sentAt: number) =>
      writeFileSync(
        `${test.databaseFile}.copies`,
        `${ago(0)}\t/root/copies\n${sentAt}\tsftp://copies.example/gpurent\n`,
      );
    write(ago(31 * HOUR_MS));
    return async () => write(ago(0));
  },
};
