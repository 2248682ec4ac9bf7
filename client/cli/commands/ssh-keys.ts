import { hostname } from 'node:os';
import type { components } from '../../api/index.js';
import { usageError } from '../errors/cli-error.js';
import { only } from '../instances/find.js';
import type { Column } from '../output/table.js';
import { minuteOf } from '../output/times.js';
import { publicKeyFiles, readPublicKey } from '../ssh/own-keys.js';
import type { Define } from '../invocation/define.js';

type SshKey = components['schemas']['SshKey'];

const COLUMNS: readonly Column<SshKey>[] = [
  { title: 'ID', of: ({ id }) => id.slice(0, 8) },
  { title: 'NAME', of: ({ name }) => name },
  { title: 'FINGERPRINT', of: ({ fingerprint }) => fingerprint, yields: 2 },
  { title: 'ADDED', of: ({ created_at }) => minuteOf(created_at), yields: 1 },
];

export const define: Define = (command, invocation) => {
  const list = async () => {
    const { items } = await invocation.gpurent().get('/v1/ssh-keys');
    invocation.list(items, COLUMNS, 'You have no SSH keys here. Add one: gpurent ssh-keys add');
  };
  command.action(list);
  command.command('list').description('your SSH keys').action(list);
  command
    .command('add [file]')
    .description('add a public key; otherwise the first one of ~/.ssh')
    .option('--name <name>', 'what it is called; otherwise the name of this machine')
    .action(async (given: string | undefined, { name = hostname() }: { name?: string }) => {
      const file = given ?? publicKeyFiles(invocation.terminal)[0];
      if (file === undefined) throw usageError('there is no public key in ~/.ssh', 'Make one: ssh-keygen -t ed25519');
      const body = { name: name.slice(0, 64), public_key: readPublicKey(file) };
      const key = await invocation.gpurent().post('/v1/ssh-keys', { body });
      invocation.object(key, () => [`${key.name} is added: ${key.fingerprint}`]);
    });
  command
    .command('remove <key>')
    .description('remove a key: its id, the beginning of it, or its name')
    .action(async (wanted: string) => {
      const gpurent = invocation.gpurent();
      const { items } = await gpurent.get('/v1/ssh-keys');
      const key = only(items, wanted, 'SSH key', (each) => each, 'gpurent ssh-keys');
      await gpurent.delete('/v1/ssh-keys/{id}', { params: { path: { id: key.id } } });
      invocation.object(key, () => [`${key.name} is removed. Instances that have it already keep it.`]);
    });
};
