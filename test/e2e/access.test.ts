import { spawn } from 'node:child_process';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { InstanceBody } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { statusIs } from '../harness/control-plane.js';
import { DEBIAN_IMAGE, execIn } from '../harness/docker.js';
import { RealPlatform, RealRenter, fingerprintOf } from '../harness/real.js';

const LONG_MS = 180_000;

type Up = InstanceBody & { open_url: string; access_token: string; access_replacement: string | null };

let real: RealPlatform;
let renter: RealRenter;
let before: Up;
let newKey: { id: string; file: string };

beforeAll(async () => {
  real = await RealPlatform.start();
  renter = await RealRenter.on(real, {
    image: DEBIAN_IMAGE,
    command: ['sh', '-c', 'python3 /srv/app.py 8000'],
    env: [{ key: 'APP_KEY', value: 'key-${SERVICE_ACCESS_TOKEN}', secret: false }],
    ports: [{ port: 8000, open_button: true }],
  });
  const { id } = await renter.deploy();
  await statusIs(renter.api, id, 'running', LONG_MS);
  before = await eventually('the link', () => withLink(id), LONG_MS);
  newKey = await addKey('new');
});
afterAll(() => real.stop());

async function withLink(id: string): Promise<Up | false> {
  const instance = await renter.api.get<Up>(`/v1/instances/${id}`);
  return Boolean(instance.open_url) && instance;
}

async function addKey(name: string): Promise<{ id: string; file: string }> {
  const file = real.path(`${name}-key`);
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file]);
  const added = { name, public_key: readFileSync(`${file}.pub`, 'utf8') };
  return { id: (await renter.api.post<{ id: string }>('/v1/ssh-keys', added)).id, file };
}

function statusOf(link: string, token: string): Promise<number> {
  const url = new URL(link);
  url.searchParams.set('token', token);
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    outgoing.on('error', reject);
    outgoing.end();
  });
}

const login = (up: InstanceBody, keyFile: string) =>
  renter.ssh(up, 'echo in', keyFile).catch((error: unknown) => {
    if (String(error).includes('Permission denied')) return 'denied';
    throw error;
  });

/** The new token and key open what the old ones do not open any more. */
async function expectReplaced(up: Up): Promise<void> {
  expect(await statusOf(up.open_url, up.access_token)).toBe(200);
  expect(await statusOf(up.open_url, before.access_token)).toBe(401);
  expect(await login(up, newKey.file)).toBe('in');
  expect(await login(up, renter.keyFile)).toBe('denied');
}

const replacedOn = (id: string) =>
  eventually(
    'the host to take it',
    async () => {
      const instance = await renter.api.get<Up>(`/v1/instances/${id}`);
      // An agent that has just started looks first whether the app answers.
      const hasLink = (instance.open_url as string | null) !== null;
      return instance.access_replacement === 'applied' && hasLink && instance;
    },
    LONG_MS,
  );

async function connected(url: string): Promise<{ isOpen: () => boolean }> {
  const socket = new WebSocket(url.replace('http', 'ws'));
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  return { isOpen: () => socket.readyState === WebSocket.OPEN };
}

it('a token and a key that are replaced open nothing any more, also after kill -9 of the agent and a stop, and whoever came in by them is out', async () => {
  await replaceBoth();
  await killAgents();
  await stopAndStart();
});

async function replaceBoth(): Promise<void> {
  expect(await statusOf(before.open_url, before.access_token)).toBe(200);
  const visit = await connected(before.open_url);
  const target = `${before.ssh_user}@${String(before.ssh_host)}`;
  const options = ['-o', 'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null', '-i', renter.keyFile];
  const session = spawn('ssh', [...options, '-p', String(before.ssh_port), target, 'echo in; sleep 300'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await new Promise((resolve) => session.stdout.once('data', resolve));
  const untouched = await fingerprintOf(before.id);

  const answered = await renter.api.post<Up>(`/v1/instances/${before.id}/access`, { ssh_key_id: newKey.id });
  expect(answered.access_token).toMatch(/^[0-9a-f]{48}$/);
  expect(answered.access_token).not.toBe(before.access_token);
  expect(answered.access_replacement).toBe('pending');
  const up = await replacedOn(before.id);
  expect(await statusOf(up.open_url, before.access_token)).toBe(401);
  expect(visit.isOpen()).toBe(false);
  await eventually('the session of the old key to end', () => session.exitCode !== null, LONG_MS);
  await eventually('the new key', async () => (await login(up, newKey.file)) === 'in', LONG_MS);
  await expectReplaced(up);
  expect(await fingerprintOf(before.id)).toEqual(untouched);
}

/** The agent looks after its start for what was replaced, also without its journal. */
async function killAgents(): Promise<void> {
  await real.killAgent();
  await real.startAgent();
  await expectReplaced(await replacedOn(before.id));
  await real.killAgent();
  real.loseJournal();
  await real.startAgent();
  await expectReplaced(await replacedOn(before.id));
}

/** From the start on the workload knows the new token. */
async function stopAndStart(): Promise<void> {
  await execIn(before.id, 'sh', '-c', 'echo "ssh-ed25519 AAAA mine" >> /root/.ssh/authorized_keys');
  expect(await renter.ssh(before, 'echo $SERVICE_ACCESS_TOKEN', newKey.file)).toBe(before.access_token);
  await renter.api.post(`/v1/instances/${before.id}/stop`);
  await statusIs(renter.api, before.id, 'stopped', LONG_MS);
  await renter.start(before.id);
  await statusIs(renter.api, before.id, 'running', LONG_MS);
  const up = await eventually('the link', () => withLink(before.id), LONG_MS);
  await expectReplaced(up);
  const known = await renter.ssh(up, 'echo "$SERVICE_ACCESS_TOKEN $APP_KEY"', newKey.file);
  expect(known).toBe(`${up.access_token} key-${up.access_token}`);
  expect(await renter.ssh(up, 'cat /root/.ssh/authorized_keys', newKey.file)).toContain('mine');
}

it('those of a stopped instance are replaced when it starts', async () => {
  const [old, oldKey] = [await renter.api.get<Up>(`/v1/instances/${before.id}`), newKey];
  await renter.api.post(`/v1/instances/${before.id}/stop`);
  await statusIs(renter.api, before.id, 'stopped', LONG_MS);
  newKey = await addKey('newer');
  await renter.api.post(`/v1/instances/${before.id}/access`, { ssh_key_id: newKey.id });
  await renter.start(before.id);
  await statusIs(renter.api, before.id, 'running', LONG_MS);
  await replacedOn(before.id);
  const up = await eventually('the link', () => withLink(before.id), LONG_MS);
  await expectReplaced(up);
  expect(await statusOf(up.open_url, old.access_token)).toBe(401);
  expect(await login(up, oldKey.file)).toBe('denied');
});

it('nothing in the container changes what the host has given it', async () => {
  const write = (path: string) => renter.ssh(before, `echo x > ${path}; echo $?`, newKey.file).catch(() => 'failed');
  expect(await write('/.gpurent-access/authorized_key 2>/dev/null')).not.toBe('0');
  expect(await renter.ssh(before, 'ls /.gpurent-access', newKey.file)).toBe('authorized_key\nenv');
});
