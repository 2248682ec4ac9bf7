import { join } from 'node:path';
import type { Instance } from '../../api/index.js';
import { configFolder } from '../context/paths.js';
import { writePrivate } from '../context/private-file.js';
import type { Invocation } from '../invocation/invocation.js';
import { forgetOthers, verifyingOptions } from '../ssh/known-hosts.js';
import { hostNameOf, sshTarget } from '../ssh/ssh-target.js';
import type { Define } from '../invocation/define.js';

export const define: Define = (command, invocation) => {
  command
    .option('--write', 'write them to a file, and say how your SSH configuration includes it')
    .action(async ({ write }: { write?: true }) => {
      const { items } = await invocation.gpurent().get('/v1/instances');
      const reachable = items.filter(({ status, ssh_host }) => status === 'running' && ssh_host !== null);
      const entries = entriesOf(invocation, reachable);
      if (invocation.wantsJson) invocation.json({ items: entries });
      const text = entries.map(({ host, options }) => `${[`Host ${host}`, ...options].join('\n  ')}\n`).join('\n');
      if (!write) return invocation.wantsJson ? undefined : void invocation.terminal.stdout.write(text);
      const file = join(configFolder(invocation.terminal.env), 'ssh_config');
      writePrivate(file, text);
      invocation.note(`${entries.length} entries in ${file}. Put this line first in ~/.ssh/config:`);
      invocation.note(`Include "${file}"`);
    });
};

function entriesOf({ terminal }: Invocation, instances: readonly Instance[]): { host: string; options: string[] }[] {
  const targets = instances.map((instance) => ({ instance, target: sshTarget(instance) }));
  forgetOthers(
    terminal,
    targets.map(({ target }) => target.alias),
  );
  const names = instances.map(hostNameOf);
  return targets.map(({ instance, target }) => {
    const name = hostNameOf(instance);
    const isOnly = names.filter((each) => each === name).length === 1;
    const options = [
      `HostName ${target.host}`,
      `Port ${target.port}`,
      `User ${target.user}`,
      ...verifyingOptions(terminal, target).map(([key, value]) => `${key} ${value}`),
    ];
    return { host: isOnly ? name : hostNameOf({ ...instance, label: null }), options };
  });
}
