import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import semver from 'semver';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { blockOf, commandsIn, inlineOf } from '../harness/guide-blocks.js';
import { RealPlatform, RealRenter } from '../harness/real.js';

const execute = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const LONG_MS = 180_000;
/** Where scripts/record-cli wants what the screen shows. */
const RECORDING = process.env['TEST_RECORDING'];

let real: RealPlatform;
let renter: RealRenter;
let home: string;
let env: Record<string, string>;
/** A tmux of its own, which sees no other. */
const SOCKET = `gpurent-test-${process.pid}`;
const tmux = (...args: string[]) => execFileSync('tmux', ['-L', SOCKET, ...args], { env, encoding: 'utf8' });

beforeAll(async () => {
  // README shows these names: scripts/record-cli.
  const agentEnv = { GPURENT_AGENT_NAME: 'amber', GPURENT_AGENT_REGION: 'Frankfurt' };
  real = await RealPlatform.start({ gpus: 2, agentEnv });
  renter = await RealRenter.on(real, { name: 'Debian' });
  home = real.path('home');
  mkdirSync(join(home, '.ssh'), { recursive: true, mode: 0o700 });
  const PATH = `${real.path('npm/bin')}:${process.env['PATH'] ?? ''}`;
  env = { PATH, HOME: home, TERM: 'xterm-256color', LANG: 'C.UTF-8', TMPDIR: real.folder };
});
afterAll(async () => {
  try {
    tmux('kill-server');
  } catch {
    // None was started.
  }
  await real.stop();
});

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

async function gpurent(...args: string[]): Promise<Ended> {
  try {
    return { code: 0, ...(await execute('gpurent', args, { env, timeout: LONG_MS })) };
  } catch (error) {
    const { code, stdout, stderr } = error as Ended;
    return { code, stdout, stderr };
  }
}

/** OpenSSH looks for keys in the home of the account, not in $HOME. */
const ssh = (...command: string[]) => gpurent('ssh', 'box', '-i', renter.keyFile, '--', ...command);

it('from npm install to a shell in three commands', async () => {
  const release = real.path('release');
  execFileSync('scripts/pack-clients', [join(release, 'clients')], { cwd: ROOT, stdio: 'ignore' });
  // As the guides say it. Neither the registry nor a repository is asked.
  const npm = { npm_config_offline: 'true', npm_config_git: '/bin/false', npm_config_prefix: real.path('npm') };
  // The guides call it by its release, also while that is still to come.
  const [built = ''] = readdirSync(join(release, 'clients')).filter((name) => /^gpurent-\d/.test(name));
  const named = `gpurent-${semver.coerce(built)?.version}.tgz`;
  const install = (folder: string, command: string) =>
    execute('bash', ['-c', command.replace(named, built)], { cwd: join(release, folder), env: { ...env, ...npm } });
  const [fromGuide = ''] = commandsIn(blockOf('docs/cli.md', 'The command line'));
  await install('clients', fromGuide);
  await execute('npm', ['uninstall', '-g', 'gpurent'], { env: { ...env, ...npm } });
  await install('.', inlineOf('docs/operator.md', `npm install -g ./clients/${named}`));

  const url = real.api.baseUrl;
  const signingIn = execute('gpurent', ['login', url], { env, timeout: LONG_MS });
  let said = '';
  signingIn.child.stderr?.on('data', (chunk: string) => (said += chunk));
  const [, code = ''] = await eventually(
    'the code',
    async () => /type ([A-Z]{4}-[A-Z]{4})/.exec(said) ?? undefined,
    LONG_MS,
  );
  const { id } = await renter.api.post<{ id: string }>('/v1/me/device-codes', { user_code: code });
  await renter.api.post(`/v1/me/device-codes/${id}/approve`);
  expect((await signingIn).stdout).toContain('Signed in');

  const deployed = await gpurent(
    'deploy',
    '--gpus',
    '1',
    '--template',
    'Debian',
    '--disk',
    '10',
    '--label',
    'box',
    '--yes',
    '--wait',
  );
  expect(deployed).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^box is up in \d+ s\ngpurent ssh box\n$/) as string,
  });

  // Nobody has typed "yes" to an unknown host key: the first connection is verified.
  expect(await ssh('id', '-u')).toEqual({ code: 0, stdout: '0\n', stderr: '' });
  expect(await ssh('exit 42')).toMatchObject({ code: 42 });
}, 180_000);

it('copies files, and writes an SSH configuration that ssh takes', async () => {
  const file = real.path('model.txt');
  writeFileSync(file, 'weights');
  expect(await gpurent('cp', '-i', renter.keyFile, file, 'box:/root/model.txt')).toMatchObject({ code: 0 });
  expect(await gpurent('ssh-config', '--write')).toMatchObject({ code: 0 });
  const config = join(home, '.config/gpurent/ssh_config');
  const options = ['-F', config, '-i', renter.keyFile, '-o', 'BatchMode=yes'];
  const { stdout } = await execute('ssh', [...options, 'gpurent-box', 'cat /root/model.txt'], { env });
  expect(stdout).toBe('weights');
  // A server with another key is refused.
  const known = join(home, '.local/state/gpurent/known_hosts');
  const [entry = ''] = readdirSync(known);
  writeFileSync(join(known, entry), `${entry} ssh-ed25519 ${'A'.repeat(68)}\n`);
  const impostor = execute('ssh', [...options, 'gpurent-box', 'true'], { env });
  await expect(impostor).rejects.toMatchObject({
    code: 255,
    stderr: expect.stringContaining('verification failed') as string,
  });
  expect(await gpurent('stop', 'box', '--wait')).toMatchObject({ code: 0, stdout: 'box is stopped\n' });
  expect(await gpurent('ssh', 'box')).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('gpurent start') as string,
  });
  expect(await gpurent('destroy', 'box', '--yes', '--wait')).toMatchObject({ code: 0, stdout: 'box is destroyed\n' });
});

/** What a person sees in a terminal of this width. */
const screen = (pane: string) => tmux('capture-pane', '-p', '-t', pane);
const shows = (pane: string, text: string | RegExp) =>
  eventually(`${String(text)} on the screen`, async () => screen(pane).search(text) >= 0 || undefined, LONG_MS).catch(
    (error: unknown) => {
      throw new Error(`${String(error)}\n${screen(pane)}`);
    },
  );

/** What is on the screen, from the command on, without the shell's prompt and the exit code. */
function recorded(shown: string): string {
  const lines = shown.split('\n').map((line) => line.trimEnd());
  const from = lines.findIndex((line) => line.includes('gpurent deploy'));
  const to = lines.findIndex((line) => line.startsWith('code 0'));
  return ['$ gpurent deploy --label fine-tune', ...lines.slice(from + 1, to)].join('\n') + '\n';
}

it.each([
  ['a wide terminal', 120, ''],
  ['a narrow one', 42, ''],
  ['one without colour', 80, 'NO_COLOR=1 '],
])(
  'asks for what is missing, says the price, and shows how far it is: %s',
  async (name, columns, before) => {
    const pane = `pane-${columns}`;
    tmux('new-session', '-d', '-x', String(columns), '-y', '40', '-s', pane, 'bash --norc');
    const enter = () => tmux('send-keys', '-t', pane, 'Enter');
    tmux('send-keys', '-t', pane, `${before}gpurent deploy --label fine-tune; echo "code $?"`, 'Enter');
    if ((await renter.api.get<{ items: unknown[] }>('/v1/offers')).items.length > 1) {
      await shows(pane, 'Which GPUs');
      enter();
    }
    await shows(pane, 'What runs on it');
    enter();
    await shows(pane, 'How large is its disk');
    enter();
    await shows(pane, /Deploy it/);
    expect(screen(pane)).toContain('$1.00 an hour');
    expect(screen(pane)).toMatch(/Balance \$[\d.]+/);
    if (name === 'one without colour') {
      // oxlint-disable-next-line no-control-regex
      expect(tmux('capture-pane', '-p', '-e', '-t', pane)).not.toMatch(/\u001b\[3\dm/);
    }
    tmux('send-keys', '-t', pane, 'y');
    await shows(pane, /fine-tune is up in \d+ s/);
    await shows(pane, 'code 0');
    if (RECORDING !== undefined && name === 'a wide terminal') writeFileSync(RECORDING, recorded(screen(pane)));
    expect(await gpurent('destroy', 'fine-tune', '--yes', '--wait')).toMatchObject({ code: 0 });
  },
  120_000,
);

it('ends with 130 at Ctrl-C, and has deployed nothing', async () => {
  const pane = 'interrupted';
  tmux('new-session', '-d', '-x', '80', '-y', '40', '-s', pane, 'bash --norc');
  tmux('send-keys', '-t', pane, 'gpurent deploy; echo "code $?"', 'Enter');
  await shows(pane, /Which GPUs|What runs on it/);
  tmux('send-keys', '-t', pane, 'C-c');
  await shows(pane, 'nothing was changed');
  await shows(pane, 'code 130');
  expect((await gpurent('ls', '--json')).stdout).toContain('"items": []');
});
