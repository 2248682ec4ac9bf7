import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fitting } from '../../client/mcp/answers.js';
import {
  clientsOn,
  install,
  InstallError,
  MCP_CLIENTS,
  uninstall,
  type Machine,
  type McpClient,
} from '../../client/mcp/install/index.js';
import { lastLines } from '../../client/mcp/log-lines.js';
import { dollars } from '../../client/mcp/money.js';
import { runBySsh, type CommandRequest } from '../../client/mcp/ssh.js';
import { untrusted } from '../../client/mcp/untrusted.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent mcp '));
});
afterAll(() => rmSync(folder, { recursive: true }));

it('shows amounts without rounding', () => {
  expect([0, 1, 10, 1_200_000, 12_345_678, -1_500_000].map(dollars)).toEqual([
    '$0.00',
    '$0.000001',
    '$0.00001',
    '$1.20',
    '$12.345678',
    '-$1.50',
  ]);
});

describe('text of strangers', () => {
  it('cannot end its brackets, move or hide anything, and is cut', () => {
    expect(untrusted('a⟧b⟦c〛d')).toBe('⟦a|b|c|d⟧');
    expect(untrusted('\u001b[31m\u0007\u200b\u202e\u{e0041}\u00ad\ufe0f')).toBe(
      '⟦\\u{1b}[31m\\u{7}\\u{200b}\\u{202e}\\u{e0041}\\u{ad}\\u{fe0f}⟧',
    );
    expect(untrusted('x'.repeat(1_000))).toBe(`⟦${'x'.repeat(300)} (700 characters more)⟧`);
    expect(untrusted('\0'.repeat(10_000), 1_000).length).toBeLessThan(2_100);
    // A pair of surrogates that is cut in two leaves nothing that is no character.
    expect(untrusted('👍👍', 3)).toBe('⟦👍\\u{d83d} (1 characters more)⟧');
  });

  it('leaves room for at most so much of a list and of a log', () => {
    const long = fitting(
      Array.from({ length: 100 }, () => 'x'.repeat(1_000)),
      (text) => ({ text }),
    );
    expect(long.items.length + long.left_out).toBe(100);
    expect(JSON.stringify(long.items).length).toBeLessThan(17_000);
    const { text, count } = lastLines([...Array.from({ length: 1_000 }, () => 'x'.repeat(100)), 'the last']);
    expect(text.length).toBeLessThan(17_000);
    expect(text.endsWith('\nthe last⟧')).toBe(true);
    expect(count).toBeLessThan(1_000);
  });
});

describe('a command by SSH', () => {
  const KEY = `ssh-ed25519 ${'A'.repeat(68)}`;
  /** An `ssh` that shows what it was given, then runs the command here. */
  const ssh = (): string => {
    const file = join(folder, 'ssh');
    writeFileSync(
      file,
      `#!/bin/sh
command=; hosts=; previous=
for word; do
  case "$word" in UserKnownHostsFile=*) hosts=$(echo "$word" | cut -d'"' -f2);; esac
  previous=$command; command=$word
done
printf '%s\\n' "$@" > '${folder}/arguments'
cat "$hosts" > '${folder}/hosts'
exec sh -c "$command"
`,
    );
    chmodSync(file, 0o755);
    return file;
  };
  const request = (command: string, fields: object = {}): CommandRequest => ({
    command,
    timeoutMs: 3e4,
    signal: new AbortController().signal,
    address: {
      host: '192.0.2.1',
      port: 20123,
      user: 'root',
      hostKey: KEY,
      ...fields,
    },
  });

  it('is one argument for ssh, which accepts only the reported key', async () => {
    const ran = await runBySsh(ssh())(request('echo out; echo "$HOME" >/dev/null; echo err >&2; exit 3'));
    expect(ran).toEqual({ exitCode: 3, timedOut: false, stdout: 'out\n', stderr: 'err\n', charsLeftOut: 0 });
    expect(readFileSync(join(folder, 'hosts'), 'utf8')).toBe(`gpurent-instance ${KEY}\n`);
    const given = readFileSync(join(folder, 'arguments'), 'utf8').trim().split('\n');
    expect(given).toEqual(
      expect.arrayContaining(['BatchMode=yes', 'StrictHostKeyChecking=yes', 'HostKeyAlias=gpurent-instance']),
    );
    expect(given.slice(-5)).toEqual([
      '-l',
      'root',
      '--',
      '192.0.2.1',
      'echo out; echo "$HOME" >/dev/null; echo err >&2; exit 3',
    ]);
    const hosts = given.find((word) => word.startsWith('UserKnownHostsFile='))?.split('"')[1] ?? '';
    expect(existsSync(dirname(hosts))).toBe(false);
  });

  it('is cut off in time, and its output in its middle', async () => {
    const run = runBySsh(ssh());
    expect(await run({ ...request('exec sleep 60'), timeoutMs: 200 })).toMatchObject({
      exitCode: null,
      timedOut: true,
    });
    const aborted = AbortSignal.timeout(200);
    expect(await run({ ...request('exec sleep 60'), signal: aborted })).toMatchObject({
      exitCode: null,
      timedOut: false,
    });
    expect(await run({ ...request('exec sleep 60'), signal: AbortSignal.abort() })).toMatchObject({ timedOut: false });
    const { stdout, charsLeftOut } = await run(request('echo begin; yes | head -c 1000000; echo end'));
    expect(stdout).toMatch(/^begin\ny\n[^]*characters left out[^]*y\nend\n$/);
    expect(stdout.length).toBeLessThan(17_000);
    expect(charsLeftOut).toBeGreaterThan(900_000);
  });

  it.each([
    { host: '-oProxyCommand=touch /tmp/x' },
    { host: 'a b' },
    { user: '-x' },
    { user: 'root@evil' },
    { port: 0 },
    { hostKey: `${KEY}\n* ${KEY}` },
  ])('is not run for an address that could mean something else: %j', async (fields) => {
    await expect(runBySsh('/nonexistent')(request('true', fields))).rejects.toThrow('SSH address');
  });

  it('says if there is no ssh', async () => {
    await expect(runBySsh('/nonexistent/ssh')(request('true'))).rejects.toThrow('ssh cannot be run');
  });
});

describe('the configuration of clients', () => {
  const PROGRAM = { command: 'gpurent', args: ['mcp'] };
  const machineIn = (name: string): Machine => ({ platform: 'linux', home: join(folder, name), env: {} });
  const read = (client: McpClient, machine: Machine) =>
    JSON.parse(readFileSync(client.file(machine), 'utf8')) as unknown;

  it.each(MCP_CLIENTS)('$name is told of gpurent, and keeps everything else', async (client) => {
    const machine = machineIn(client.id);
    const file = client.file(machine);
    const entry = { ...(client.withType ? { type: 'stdio' } : {}), ...PROGRAM };
    expect(await install(client, machine, PROGRAM)).toEqual({ client, file, changed: true });
    expect(read(client, machine)).toEqual({ [client.field]: { gpurent: entry } });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const others = { theme: 'dark', [client.field]: { other: { command: 'x' }, gpurent: { command: 'old' } } };
    writeFileSync(file, JSON.stringify(others), { mode: 0o644 });
    chmodSync(file, 0o644);
    expect(await install(client, machine, PROGRAM)).toMatchObject({ changed: true });
    expect(await install(client, machine, PROGRAM)).toMatchObject({ changed: false });
    expect(read(client, machine)).toEqual({
      theme: 'dark',
      [client.field]: { other: { command: 'x' }, gpurent: entry },
    });
    expect(statSync(file).mode & 0o777).toBe(0o644);
    expect(await uninstall(client, machine)).toMatchObject({ changed: true });
    expect(read(client, machine)).toEqual({ theme: 'dark', [client.field]: { other: { command: 'x' } } });
  });

  it.each(['{ "a": 1, // a comment\n}', '[]', '{ "mcpServers": [] }'])(
    '%j is left as it is, and the person told what to add',
    async (text) => {
      const [client] = MCP_CLIENTS;
      if (!client) throw new Error('there is no client');
      const machine = machineIn('odd');
      mkdirSync(dirname(client.file(machine)), { recursive: true });
      writeFileSync(client.file(machine), text);
      await expect(install(client, machine, PROGRAM)).rejects.toThrow(InstallError);
      await expect(install(client, machine, PROGRAM)).rejects.toThrow(
        '"gpurent": {"command":"gpurent","args":["mcp"]}',
      );
      expect(readFileSync(client.file(machine), 'utf8')).toBe(text);
    },
  );

  it('follows links, and knows which clients are there', async () => {
    const machine = machineIn('linked');
    const cursor = MCP_CLIENTS.find(({ id }) => id === 'cursor');
    if (!cursor) throw new Error('there is no Cursor');
    expect(await clientsOn(machine)).toEqual([]);
    mkdirSync(dirname(cursor.file(machine)), { recursive: true });
    expect(await clientsOn(machine)).toEqual([cursor]);
    const kept = join(folder, 'dotfiles.json');
    writeFileSync(kept, '{}');
    symlinkSync(kept, cursor.file(machine));
    await install(cursor, machine, PROGRAM);
    expect(JSON.parse(readFileSync(kept, 'utf8'))).toEqual({ mcpServers: { gpurent: PROGRAM } });
  });

  it('is where each system has it', () => {
    const fileOf = (id: string, machine: Machine) => MCP_CLIENTS.find((client) => client.id === id)?.file(machine);
    const mac: Machine = { platform: 'darwin', home: '/Users/me', env: {} };
    const windows: Machine = { platform: 'win32', home: 'C:\\Users\\me', env: { APPDATA: 'D:\\Data' } };
    const linux: Machine = { platform: 'linux', home: '/home/me', env: { XDG_CONFIG_HOME: '/cfg' } };
    expect(fileOf('claude-desktop', mac)).toBe(
      '/Users/me/Library/Application Support/Claude/claude_desktop_config.json',
    );
    expect(fileOf('claude-desktop', windows)).toBe('D:\\Data\\Claude\\claude_desktop_config.json');
    expect(fileOf('vscode', linux)).toBe('/cfg/Code/User/mcp.json');
    expect(fileOf('claude-code', windows)).toBe('C:\\Users\\me\\.claude.json');
  });
});
