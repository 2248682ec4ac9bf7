import { CliError, usageError } from '../errors/cli-error.js';
import { EXIT } from '../errors/exit-codes.js';
import { only } from '../instances/find.js';
import type { Invocation } from '../invocation/invocation.js';
import type { Column } from '../output/table.js';
import type { Define } from '../invocation/define.js';

interface Row {
  name: string;
  current: boolean;
  url: string;
  email: string | null;
  organization_id: string | null;
}

const COLUMNS: readonly Column<Row>[] = [
  { title: '', of: ({ current }) => (current ? '*' : '') },
  { title: 'NAME', of: ({ name }) => name },
  { title: 'URL', of: ({ url }) => url, yields: 2 },
  { title: 'WHO', of: ({ email }) => email ?? 'API key', yields: 1 },
  { title: 'ORGANIZATION', of: ({ organization_id }) => organization_id ?? 'the first', yields: 3 },
];

export const define: Define = (command, invocation) => {
  command.action(() => {
    const { current, contexts } = invocation.contexts.read();
    const rows = Object.entries(contexts).map(([name, { url, email, organization_id }]): Row => {
      return { name, current: name === current, url, email, organization_id };
    });
    invocation.list(rows, COLUMNS, 'There is no context yet. Sign in: gpurent login https://gpurent.example.com');
  });
  command
    .command('use <name>')
    .description('use this context from now on')
    .action((name: string) => {
      existing(invocation, name);
      invocation.contexts.use(name);
      invocation.object({ context: name }, () => [`${name} is the current context now.`]);
    });
  command
    .command('org <organization>')
    .description('act for this organization of yours from now on: its id, the beginning of it, or its name')
    .action((wanted: string) => chooseOrganization(invocation, wanted));
  command
    .command('remove <name>')
    .description('forget a context; a session stays open, see gpurent logout')
    .action((name: string) => {
      existing(invocation, name);
      invocation.contexts.remove(name);
      invocation.object({ context: name }, () => [`${name} is forgotten.`]);
    });
};

function existing({ contexts }: Invocation, name: string): void {
  if (!contexts.find(name))
    throw new CliError(EXIT.usage, `there is no context "${name}"`, 'List them: gpurent context');
}

async function chooseOrganization(invocation: Invocation, wanted: string): Promise<void> {
  const found = invocation.contexts.find(invocation.options.context);
  if (!found) throw usageError('there is no context', 'Sign in: gpurent login https://gpurent.example.com');
  const { url, token } = found.context;
  const { memberships } = await invocation.connect(url, { token }).get('/v1/me');
  const { organization_id, name } = only(
    memberships,
    wanted,
    'organization of yours',
    (each) => ({ id: each.organization_id, name: each.name }),
    'gpurent api GET /v1/me',
  );
  invocation.contexts.put(found.name, { ...found.context, organization_id });
  invocation.object({ context: found.name, organization_id }, () => [`${found.name} acts for ${name} now.`]);
}
