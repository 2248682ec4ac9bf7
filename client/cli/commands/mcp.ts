import { homedir } from 'node:os';
import {
  clientsOn,
  install,
  InstallError,
  MCP_CLIENTS,
  uninstall,
  type Installed,
  type Machine,
  type McpClient,
} from '../../mcp/install/index.js';
import { CliError, usageError } from '../errors/cli-error.js';
import { EXIT } from '../errors/exit-codes.js';
import type { Define } from '../invocation/define.js';
import type { Invocation } from '../invocation/invocation.js';
import { VERSION } from '../invocation/version.js';

const KNOWN = MCP_CLIENTS.map(({ id }) => id).join(', ');
const WHICH = `${KNOWN}; without one, those that this machine has`;

export const define: Define = (command, invocation) => {
  command.action(async () => {
    const { serveOverStdio } = await import('../../mcp/stdio.js');
    await serveOverStdio(invocation.gpurent(), { version: VERSION, signal: invocation.terminal.interrupted });
  });
  command
    .command('install [clients...]')
    .description('tell AI clients on this machine of gpurent')
    .addHelpText('after', `\nClients: ${WHICH}.`)
    .action(async (ids: string[]) => {
      const program = programOf(invocation);
      await change(invocation, ids, (client, machine) => install(client, machine, program));
      invocation.note('Restart them. They act with the rights of your context: see gpurent keys for one with fewer.');
    });
  command
    .command('uninstall [clients...]')
    .description('take gpurent out of their configuration')
    .addHelpText('after', `\nClients: ${WHICH}.`)
    .action((ids: string[]) => change(invocation, ids, uninstall));
};

/** Returns what a client is to start. It has no token, and names the context: another one can be the current one then. */
function programOf(invocation: Invocation) {
  const { name } = invocation.chosen();
  if (name === null)
    throw usageError('the credential is in the environment, which AI clients do not have', 'Sign in: gpurent login');
  // Programs with windows often have another PATH than a shell.
  return { command: process.execPath, args: [process.argv[1] ?? 'gpurent', '--context', name, 'mcp'] };
}

async function change(
  invocation: Invocation,
  ids: readonly string[],
  act: (client: McpClient, machine: Machine) => Promise<Installed>,
): Promise<void> {
  const { env } = invocation.terminal;
  const machine: Machine = { platform: process.platform, home: env['HOME'] ?? homedir(), env };
  const clients = ids.length > 0 ? ids.map(clientOf) : await clientsOn(machine);
  if (clients.length === 0) throw usageError('no AI client was found on this machine', `Name one: ${KNOWN}`);
  const done: Installed[] = [];
  for (const client of clients) done.push(await act(client, machine).catch(shown));
  const rows = done.map(({ client, file, changed }) => ({ client: client.id, file, changed }));
  invocation.list(
    rows,
    [
      { title: 'CLIENT', of: ({ client }) => client },
      { title: 'FILE', of: ({ file }) => file },
      { title: 'CHANGED', of: ({ changed }) => (changed ? 'yes' : 'it was so already') },
    ],
    '',
  );
}

function clientOf(id: string): McpClient {
  const client = MCP_CLIENTS.find((each) => each.id === id);
  if (!client) throw usageError(`there is no client "${id}"`, `Name one: ${KNOWN}`);
  return client;
}

function shown(error: unknown): never {
  throw error instanceof InstallError ? new CliError(EXIT.failed, error.message) : error;
}
