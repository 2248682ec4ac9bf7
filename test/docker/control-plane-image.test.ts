import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { leftBy } from '../harness/releases.js';

/** Where the scripts have put the archive of the image, and the program Caddy. */
const ARCHIVE = process.env['TEST_CONTROL_PLANE_IMAGE'] ?? 'TEST_CONTROL_PLANE_IMAGE';
const CADDY = process.env['TEST_CADDY'] ?? 'caddy';

const PACKAGING = fileURLToPath(new URL('../../packaging/container', import.meta.url));
const PROJECT = 'gpurent-image-test';
const ACCOUNT = 65_532;
const OPERATOR = { email: 'first@example.com', password: 'the first operator' };
const COPY = '/var/lib/gpurent-backups/extra.db';

let folder: string;

interface Answer {
  status: number;
  body: { token?: string; items?: unknown[] } | undefined;
}

const run = (program: string, args: string[], input = '') =>
  execFileSync(program, args, { cwd: folder, input, encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'] }).trim();
const docker = (...args: string[]) => run('docker', args);
const compose = (...args: string[]) => run('docker-compose', ['--project-name', PROJECT, ...args]);
const composeWith = (input: string, ...args: string[]) =>
  run('docker-compose', ['--project-name', PROJECT, ...args], input);
const inspect = (format: string, service = 'control-plane') =>
  docker('inspect', '--format', format, compose('ps', '-q', service));

/** An image of the name that compose.yaml has, with Debian's Caddy: there is no registry here. */
function makeCaddy(): void {
  const name = /image: (caddy:\S+)/.exec(readFileSync(join(PACKAGING, 'compose.yaml'), 'utf8'))?.[1] ?? '';
  const tree = join(folder, 'caddy');
  mkdirSync(join(tree, 'usr/bin'), { recursive: true });
  copyFileSync(CADDY, join(tree, 'usr/bin/caddy'));
  // Debian's needs the C library.
  run('sh', ['-c', `cp --parents -L $(ldd "$1" | grep -o '/[^ ]*') "$2"`, 'sh', CADDY, tree]);
  run('sh', ['-c', `tar -C "$1" -c . | docker import --change 'ENV XDG_DATA_HOME=/data' - "$2"`, 'sh', tree, name]);
}

/** Puts a database and its key into the volume, as a restore on a new machine does. */
function fillVolume(release: string): void {
  const { secretKey } = JSON.parse(readFileSync(leftBy(release, 'world.json'), 'utf8')) as { secretKey: string };
  const data = join(folder, 'data');
  mkdirSync(data);
  copyFileSync(leftBy(release, 'store.db'), join(data, 'gpurent.db'));
  writeFileSync(join(data, 'gpurent.db.key'), `${secretKey}\n`, { mode: 0o600 });
  run('chown', ['-R', `${ACCOUNT}:${ACCOUNT}`, data]);
  compose('up', '--no-start', 'control-plane');
  docker('cp', `${data}/.`, `${compose('ps', '-q', 'control-plane')}:/var/lib/gpurent`);
}

/** Asks through Caddy, whose authority nobody knows here. Resolves to undefined while nothing answers. */
function ask(method: string, path: string, body?: unknown, token?: string) {
  const headers = {
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  };
  return new Promise<Answer | undefined>((resolve) => {
    const asked = request(
      `https://localhost${path}`,
      { method, headers, rejectUnauthorized: false, agent: false },
      (response) => {
        void text(response).then((answer) =>
          resolve({
            status: response.statusCode ?? 0,
            body: answer ? (JSON.parse(answer) as Answer['body']) : undefined,
          }),
        );
      },
    );
    asked.on('error', () => resolve(undefined));
    asked.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
const answers = (path: string) =>
  eventually(`an answer to ${path}`, async () => (await ask('GET', path))?.status === 200);
const signIn = ({ email, password }: typeof OPERATOR) => ask('POST', '/v1/auth/sign-in', { email, password });
const restartCount = () => Number(inspect('{{.RestartCount}}'));

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-test-'));
  cpSync(PACKAGING, folder, { recursive: true });
  run('sed', ['-i', 's/interval: 30s/interval: 1s/', 'compose.yaml']);
  const [, version = ''] = /control-plane:(\S+)/.exec(docker('load', '--input', ARCHIVE)) ?? [];
  writeFileSync(join(folder, '.env'), `GPURENT_VERSION=${version}\nGPURENT_NAME=localhost\n`);
  makeCaddy();
});
afterEach(() => {
  compose('down', '--volumes', '--timeout', '1');
  rmSync(folder, { recursive: true });
});

it('compose.yaml upgrades a database, survives a kill, and restores a copy, without a right or a file to write beside its data', async () => {
  fillVolume('0.2.0');
  const creating = ['create-operator', '--email', OPERATOR.email, '--link'];
  const link = composeWith('', 'run', '--rm', '-T', 'control-plane', ...creating);
  const [, token] = /https:\/\/localhost\/reset-password\?token=(\S+)/.exec(link) ?? [];
  compose('up', '--detach');
  await answers('/readyz');
  await eventually('Docker to see its health', () => inspect('{{.State.Health.Status}}') === 'healthy');

  const chosen = { token, new_password: OPERATOR.password };
  expect((await ask('POST', '/v1/auth/password-reset/confirm', chosen))?.status).toBe(204);
  expect((await ask('POST', '/v1/auth/password-reset/confirm', chosen))?.status).not.toBe(204);
  const operator = (await signIn(OPERATOR))?.body?.token;
  const machines = await ask('GET', '/v1/operator/machines', undefined, operator);
  expect(machines?.body?.items).toHaveLength(2);
  expect((await ask('GET', '/metrics'))?.status).toBe(404);

  expect(readFileSync(`/proc/${inspect('{{.State.Pid}}')}/status`, 'utf8')).toMatch(
    new RegExp(`^Uid:\\s${ACCOUNT}\\s[^]*^CapBnd:\\s0+$[^]*^NoNewPrivs:\\s1$`, 'm'),
  );
  const inside = `const { writeFileSync, statSync } = require('fs'); let refused;
    try { writeFileSync('/opt/gpurent/x', ''); } catch (error) { refused = error.code; }
    console.log(refused, (statSync('/var/lib/gpurent/gpurent.db').mode & 0o777).toString(8))`;
  expect(compose('exec', '-T', 'control-plane', 'node', '-e', inside)).toMatch(/^EROFS 6[04]0$/);

  compose('exec', '-T', 'control-plane', 'gpurent-control-plane', 'backup', COPY);
  const late = { email: 'late@example.com', password: 'after the backup', name: 'Late' };
  expect((await ask('POST', '/v1/auth/sign-up', late))?.status).toBe(201);

  const before = restartCount();
  process.kill(Number(inspect('{{.State.Pid}}')), 'SIGKILL');
  await eventually('Docker to start it again', () => restartCount() > before);
  await answers('/readyz');
  expect((await ask('GET', '/v1/operator/machines', undefined, operator))?.status).toBe(200);
  expect((await signIn(late))?.status).toBe(200);

  compose('stop', 'control-plane');
  expect(inspect('{{.State.ExitCode}}')).toBe('0');
  expect(compose('logs', '--no-color', 'control-plane')).toContain('"stopped"');
  compose('run', '--rm', '-T', 'control-plane', 'restore', COPY);
  compose('start', 'control-plane');
  await answers('/readyz');
  expect((await signIn(OPERATOR))?.status).toBe(200);
  expect((await signIn(late))?.status).toBe(401);
});
