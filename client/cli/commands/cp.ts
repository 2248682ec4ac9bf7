import { usageError } from '../errors/cli-error.js';
import { ExitWith } from '../errors/exit-with.js';
import { onlyKey } from '../../text/ssh-keys.js';
import { findFittingKey, missingKey, offering } from '../ssh/local-keys.js';
import { verifyingOptions } from '../ssh/known-hosts.js';
import { reach } from '../ssh/ready-instance.js';
import { runProgram } from '../ssh/run-program.js';
import type { Define } from '../invocation/define.js';

interface Options {
  recursive?: true;
  identity?: string;
}

/** `INSTANCE:PATH`; what has a slash before its first colon is a file of this machine. */
const REMOTE = /^([^/:]+):(.*)$/;

export const define: Define = (command, invocation) => {
  command
    .argument('<from>', 'a file, or INSTANCE:PATH')
    .argument('<to>', 'a file, or INSTANCE:PATH')
    .option('-r, --recursive', 'with whole folders')
    .option('-i, --identity <file>', 'the private key to log in with')
    .action(async (from: string, to: string, { recursive, identity }: Options) => {
      const names = [from, to].map((place) => REMOTE.exec(place)?.[1]);
      const [name, other] = names.filter((each) => each !== undefined);
      if (name === undefined || other !== undefined)
        throw usageError(
          'one of the two places must be on an instance, as INSTANCE:PATH',
          'For example: gpurent cp model.pt trainer:/root/',
        );
      const { instance, target } = await reach(invocation, invocation.gpurent(), name);
      const { host, user, port } = target;
      const address = `${user}@${host.includes(':') ? `[${host}]` : host}`;
      const places = [from, to].map((place) => {
        const [, remote, path = ''] = REMOTE.exec(place) ?? [];
        return remote === undefined ? (place.startsWith('-') ? `./${place}` : place) : `${address}:${path}`;
      });
      const options = verifyingOptions(invocation.terminal, target).flatMap(([key, value]) => [
        '-o',
        `${key}=${value}`,
      ]);
      const fitting = await findFittingKey(invocation.terminal, instance, target);
      const flags = [...(recursive ? ['-r'] : []), ...(identity === undefined ? offering(fitting) : ['-i', identity])];
      const args = [...options, ...flags, '-P', String(port), '--', ...places];
      const code = await runProgram(invocation.terminal, 'scp', args);
      const missing = missingKey(fitting, instance);
      if (code !== 0 && fitting.fingerprint !== null && missing !== undefined)
        invocation.note(`${onlyKey(fitting.fingerprint)} ${missing}`);
      if (code !== 0) throw new ExitWith(code);
    });
};
