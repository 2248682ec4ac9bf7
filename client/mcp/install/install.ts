import { randomUUID } from 'node:crypto';
import { chmod, mkdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { MCP_CLIENTS, type Machine, type McpClient } from './clients.js';

/** What a client starts. It has no token: the program takes it from the context of gpurent. */
export interface Program {
  /** Absolute, or found in PATH: programs with windows often have another PATH than a shell. */
  command: string;
  args: readonly string[];
}

export interface Installed {
  client: McpClient;
  file: string;
  /** Whether the file was changed; false: it was so already. */
  changed: boolean;
}

/** A configuration that cannot be changed by a program. Its message says what to do by hand. */
export class InstallError extends Error {
  override readonly name = 'InstallError';
}

/** The name of the server in the configuration of a client. */
export const SERVER_NAME = 'gpurent';
const PRIVATE_FILE = 0o600;
const PRIVATE_FOLDER = 0o700;

type Configuration = Record<string, unknown>;

/** Returns the clients that this machine seems to have: those whose settings have a file or a folder. */
export async function clientsOn(machine: Machine): Promise<McpClient[]> {
  const present = await Promise.all(
    MCP_CLIENTS.map(async (client) => {
      const file = client.file(machine);
      const folder = dirname(file);
      return (await exists(file)) || (folder !== machine.home && (await exists(folder)));
    }),
  );
  return MCP_CLIENTS.filter((_, index) => present[index]);
}

/**
 * Adds gpurent to the configuration of a client, or replaces the entry that it has. Everything else in the file stays. Throws
 * InstallError, and changes nothing, if the file is not JSON of the expected form.
 */
export function install(client: McpClient, machine: Machine, { command, args }: Program): Promise<Installed> {
  const entry = { ...(client.withType ? { type: 'stdio' } : {}), command, args: [...args] };
  return change(client, machine, (servers) => ({ ...servers, [SERVER_NAME]: entry }), entry);
}

/** Takes gpurent out of the configuration of a client. Throws InstallError as {@link install} does. */
export function uninstall(client: McpClient, machine: Machine): Promise<Installed> {
  return change(client, machine, ({ [SERVER_NAME]: _, ...others }) => others);
}

async function change(
  client: McpClient,
  machine: Machine,
  edit: (servers: Configuration) => Configuration,
  entry?: object,
): Promise<Installed> {
  const file = client.file(machine);
  const before = await readOrNull(file);
  const configuration = before === null || before.trim() === '' ? {} : parsed(before, client, file, entry);
  const servers = configuration[client.field] ?? {};
  if (!isObject(servers)) throw byHand(client, file, `"${client.field}" is not an object`, entry);
  const edited = edit(servers);
  const isSame = JSON.stringify(edited) === JSON.stringify(servers);
  if (!isSame) await replace(file, { ...configuration, [client.field]: edited });
  return { client, file, changed: !isSame };
}

function parsed(text: string, client: McpClient, file: string, entry?: object): Configuration {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // Some clients allow comments, which would be lost.
  }
  throw byHand(client, file, 'it is not plain JSON, for example because it has comments', entry);
}

function byHand({ name, field }: McpClient, file: string, why: string, entry?: object): InstallError {
  const what = entry
    ? `Add this to "${field}" by hand: "${SERVER_NAME}": ${JSON.stringify(entry)}`
    : `Remove "${SERVER_NAME}" from "${field}" by hand.`;
  return new InstallError(`${file}, the configuration of ${name}, was not changed: ${why}. ${what}`);
}

function isObject(value: unknown): value is Configuration {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Replaces a file at once, so that a client never reads half of it. A link stays a link. */
async function replace(file: string, configuration: Configuration): Promise<void> {
  const target = await realpath(file).catch(() => file);
  await mkdir(dirname(target), { recursive: true, mode: PRIVATE_FOLDER });
  const mode = await stat(target).then(
    (known) => known.mode & 0o777,
    () => PRIVATE_FILE,
  );
  const written = join(dirname(target), `.gpurent-${randomUUID()}`);
  try {
    await writeFile(written, `${JSON.stringify(configuration, null, 2)}\n`, { mode: PRIVATE_FILE, flag: 'wx' });
    await chmod(written, mode);
    await rename(written, target);
  } finally {
    await rm(written, { force: true });
  }
}

async function readOrNull(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
