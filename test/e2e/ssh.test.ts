import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { statusIs } from '../harness/control-plane.js';
import { DEBIAN_IMAGE, SAMPLE_IMAGE, docker, makeImage } from '../harness/docker.js';
import { eventually } from '../../scripts/eventually.js';
import { RealPlatform, RealRenter } from '../harness/real.js';
import { takePort } from '../harness/worker.js';

const run = promisify(execFile);
const LONG_MS = 180_000;
const SERVER = ['sh', '-c', 'while :; do echo "from inside" | nc -l -p 7000 127.0.0.1; done'];
const PYTHON_SERVER = ['python3', '/srv/app.py', '7000'];

let real: RealPlatform;
beforeAll(async () => {
  await makeImage(
    'gpurent/test-worker',
    ['USER worker', `CMD ${JSON.stringify(PYTHON_SERVER)}`],
    'SIGTERM',
    DEBIAN_IMAGE,
  );
  real = await RealPlatform.start();
});
afterAll(async () => {
  await real.stop();
  await docker.getImage('gpurent/test-worker:1').remove();
});

describe.each([
  ['only a static shell', { image: SAMPLE_IMAGE, command: SERVER }, '0', '/root', 'from inside'],
  ['Debian', { image: DEBIAN_IMAGE, command: PYTHON_SERVER }, '0', '/root', 'port 7000'],
  [
    'Debian, as an account that is not root',
    { image: 'gpurent/test-worker:1', ssh_user: 'worker' },
    '1000',
    '/home/worker',
    'port 7000',
  ],
] as const)('an image that holds %s', (_, template, uid, home, answer) => {
  let renter: RealRenter;
  let up: InstanceBody;

  beforeAll(async () => {
    renter = await RealRenter.on(real, template);
    const { id } = await renter.deploy({ env_overrides: [{ key: 'MINE', value: 'a b' }] });
    up = await statusIs(renter.api, id, 'running', LONG_MS);
  });
  afterAll(() => renter.destroy(up.id));

  const ssh = (command: string) => renter.ssh(up, command);

  it('is logged into, with the environment of the instance', async () => {
    expect(await ssh('id -u; echo "$HOME $MINE"; pwd')).toBe(`${uid}\n${home} a b\n${home}`);
  });

  it('is copied to by SFTP, by scp of old and by rsync', async () => {
    const file = real.path('upload');
    writeFileSync(file, 'x'.repeat(300_000));
    await renter.scp(up, file, `${home}/by-sftp`);
    await renter.scp(up, file, `${home}/by-scp`, '-O');
    await renter.rsync(up, file, `${home}/by-rsync`);
    const sizes = await ssh(`wc -c < ${home}/by-sftp; wc -c < ${home}/by-scp; wc -c < ${home}/by-rsync`);
    expect(sizes.split(/\s+/)).toEqual(['300000', '300000', '300000']);
  });

  it('lets a port be forwarded', async () => {
    const near = `127.0.0.1:${takePort()}`;
    await renter.forward(up, `${near}:127.0.0.1:7000`, async () => {
      const heard = await eventually('an answer', () => fetchText(`http://${near}/`), LONG_MS);
      expect(heard).toContain(answer);
    });
  });

  it('shows the same host key after a stop and a start', async () => {
    const before = await hostKeyOf(up);
    await eventually('the host key', async () => {
      const { ssh_host_key } = await renter.api.get<{ ssh_host_key: string | null }>(`/v1/instances/${up.id}`);
      return ssh_host_key === before;
    });
    await renter.api.post(`/v1/instances/${up.id}/stop`);
    await statusIs(renter.api, up.id, 'stopped', LONG_MS);
    await renter.start(up.id);
    up = await statusIs(renter.api, up.id, 'running', LONG_MS);
    expect(await hostKeyOf(up)).toBe(before);
    expect(before).toMatch(/^ssh-ed25519 /);
  });
});

it('gains nobody root by a program that is setuid', async () => {
  const renter = await RealRenter.on(real, { image: 'gpurent/test-worker:1', ssh_user: 'worker' });
  const { id } = await renter.deploy();
  const up = await statusIs(renter.api, id, 'running', LONG_MS);
  expect(await renter.ssh(up, 'ls -l /usr/local/bin/rootcat')).toContain('-rwsr-xr-x');
  await expect(renter.ssh(up, 'rootcat /etc/shadow')).rejects.toThrow(/Permission denied/);
  await renter.destroy(id);
});

/** Also of what answers without speaking HTTP. */
function fetchText(url: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    let heard = '';
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port) }, () => socket.write('GET / HTTP/1.0\r\n\r\n'));
    socket.on('data', (data) => (heard += data.toString()));
    socket.on('error', () => resolve(undefined));
    socket.on('close', () => resolve(heard || undefined));
  });
}

/** ssh-keyscan waits five seconds for an answer, which a busy machine can take. */
function hostKeyOf({ ssh_host, ssh_port }: InstanceBody): Promise<string> {
  const args = ['-t', 'ed25519', '-p', String(ssh_port), String(ssh_host)];
  return eventually('the host key', async () => {
    const scanned = await run('ssh-keyscan', args).catch(() => undefined);
    return scanned?.stdout.trim().split(' ').slice(1).join(' ');
  });
}
