import { CliError } from '../errors/cli-error.js';
import { EXIT } from '../errors/exit-codes.js';
import { ExitWith } from '../errors/exit-with.js';
import { onlyKey } from '../../text/ssh-keys.js';
import { findFittingKey, missingKey, offering } from '../ssh/local-keys.js';
import { verifyingOptions } from '../ssh/known-hosts.js';
import { reach } from '../ssh/ready-instance.js';
import { runProgram } from '../ssh/run-program.js';
import type { Define } from '../invocation/define.js';
import { INSTANCE } from './options.js';

export const define: Define = (command, invocation) => {
  command
    .argument(...INSTANCE)
    .argument('[command...]', 'what to run there instead of a shell, after --')
    .option('-i, --identity <file>', 'the private key to log in with')
    .action(async (name: string, remote: string[], { identity }: { identity?: string }) => {
      const { terminal } = invocation;
      const { instance, target } = await reach(invocation, invocation.gpurent(), name);
      const options = verifyingOptions(terminal, target).flatMap(([key, value]) => ['-o', `${key}=${value}`]);
      const fitting = await findFittingKey(terminal, instance, target);
      const key = identity === undefined ? offering(fitting) : ['-i', identity];
      const { port, user, host } = target;
      const code = await runProgram(terminal, 'ssh', [
        ...options,
        ...key,
        '-p',
        String(port),
        '-l',
        user,
        '--',
        host,
        ...remote,
      ]);
      const missing = missingKey(fitting, instance);
      if (code === 255 && fitting.fingerprint !== null && missing !== undefined) {
        const words = `ssh could not connect. ${onlyKey(fitting.fingerprint)}`;
        if (remote.length === 0) throw new CliError(EXIT.failed, words, missing);
        invocation.note(`${words} ${missing}`);
      }
      if (code === 255 && remote.length === 0)
        throw new CliError(
          EXIT.failed,
          'ssh could not connect',
          `Check the SSH key of the instance, and gpurent events ${name}`,
        );
      if (code !== 0) throw new ExitWith(code);
    });
};
