import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { stateFolder } from '../context/paths.js';
import { writePrivate } from '../context/private-file.js';
import { CliError } from '../errors/cli-error.js';
import { EXIT } from '../errors/exit-codes.js';
import { findInstance, nameOf } from '../instances/find.js';
import type { Define } from '../invocation/define.js';
import { INSTANCE } from './options.js';

const OPENERS: Readonly<Record<string, string>> = { darwin: 'open', win32: 'explorer' };

export const define: Define = (command, invocation) => {
  command
    .argument(...INSTANCE)
    .option('--print', 'print the address instead; it holds the access token of the instance')
    .action(async (name: string, { print }: { print?: true }) => {
      const instance = await findInstance(invocation.gpurent(), name);
      const address = instance.open_url ?? instance.jupyter_url;
      if (address === null || !/^https?:\/\//.test(address))
        throw new CliError(EXIT.refused, `${nameOf(instance)} has no page now`, `See gpurent show ${instance.id}`);
      if (invocation.wantsJson) return invocation.json({ url: address });
      if (print) return invocation.line(address);
      // Others can read the arguments of a program, but not this file.
      const file = join(stateFolder(invocation.terminal.env), 'open.html');
      writePrivate(file, pageThatOpens(address));
      const opener = OPENERS[process.platform] ?? 'xdg-open';
      const code = await invocation.terminal.run(opener, [pathToFileURL(file).href]).catch(() => 1);
      if (code !== 0)
        throw new CliError(
          EXIT.failed,
          `${opener} has opened no browser`,
          `Print the address: gpurent open ${name} --print`,
        );
      invocation.note(`${nameOf(instance)} is open in your browser.`);
    });
};

function pageThatOpens(address: string): string {
  const escaped = address.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
  return `<!doctype html><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url=${escaped}">\n`;
}
