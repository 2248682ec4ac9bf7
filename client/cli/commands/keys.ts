import { Option } from 'commander';
import type { components } from '../../api/index.js';
import { only } from '../instances/find.js';
import type { Define } from '../invocation/define.js';
import type { Column } from '../output/table.js';
import { ago, minuteOf } from '../output/times.js';
import { duration, money, several } from './options.js';

type ApiKey = components['schemas']['ApiKey'];

interface Options {
  kind: 'personal' | 'team';
  readOnly?: true;
  address?: string[];
  expires?: number;
  capHour?: number;
  capDay?: number;
  capMonth?: number;
}

export const define: Define = (command, invocation) => {
  const list = async () => {
    const { items } = await invocation.gpurent().get('/v1/api-keys');
    invocation.list(
      items,
      columns(invocation.terminal.now()),
      'There are no API keys. Make one: gpurent keys create NAME',
    );
  };
  command.action(list);
  command.command('list').description('the API keys of the organization').action(list);
  command
    .command('create <name>')
    .description('make an API key, and print its secret, once')
    .addOption(
      new Option('--kind <kind>', 'personal: ends when you leave').choices(['personal', 'team']).default('personal'),
    )
    .option('--read-only', 'it changes nothing')
    .option('--address <range>', 'only from here, as 203.0.113.0/24; can be given several times', several)
    .option('--expires <duration>', 'it ends after so long', duration)
    .option('--cap-hour <dollars>', 'what its instances may cost an hour', money)
    .option('--cap-day <dollars>', 'what they may cost a day', money)
    .option('--cap-month <dollars>', 'what they may cost a month', money)
    .action(async (name: string, { kind, readOnly, address, expires, capHour, capDay, capMonth }: Options) => {
      const caps = { burn_per_hour_micro: capHour, day_micro: capDay, month_micro: capMonth };
      const given = Object.fromEntries(Object.entries(caps).filter(([, cap]) => cap !== undefined));
      const ends =
        expires === undefined ? {} : { expires_at: new Date(invocation.terminal.now() + expires).toISOString() };
      const body = {
        name,
        kind,
        ...(readOnly ? { read_only: true } : {}),
        ...(address ? { allowed_addresses: address } : {}),
        ...ends,
        ...(Object.keys(given).length > 0 ? { spend_caps: given } : {}),
      };
      const created = await invocation.gpurent().post('/v1/api-keys', { body });
      if (invocation.wantsJson) return invocation.json(created);
      invocation.note(`The secret of ${created.key.name}, which is shown only now:`);
      invocation.line(created.secret);
    });
  command
    .command('revoke <key>')
    .description('end a key: its id, the beginning of it, or its name')
    .action(async (wanted: string) => {
      const gpurent = invocation.gpurent();
      const { items } = await gpurent.get('/v1/api-keys');
      const key = only(items, wanted, 'API key', (each) => each, 'gpurent keys');
      await gpurent.delete('/v1/api-keys/{id}', { params: { path: { id: key.id } } });
      invocation.object(key, () => [`${key.name} (${key.prefix}...) is revoked. Its instances go on.`]);
    });
};

const columns = (now: number): Column<ApiKey>[] => [
  { title: 'ID', of: ({ id }) => id.slice(0, 8) },
  { title: 'NAME', of: ({ name }) => name },
  { title: 'PREFIX', of: ({ prefix }) => prefix, yields: 1 },
  { title: 'KIND', of: ({ kind, read_only }) => (read_only ? `${kind}, read-only` : kind), yields: 2 },
  { title: 'LAST USED', of: ({ last_used_at }) => ago(last_used_at, now), yields: 3 },
  { title: 'EXPIRES', of: ({ expires_at }) => minuteOf(expires_at), yields: 4 },
  { title: 'BY', of: ({ creator_email }) => creator_email, yields: 5 },
];
