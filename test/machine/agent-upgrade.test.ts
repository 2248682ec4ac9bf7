import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { RELEASES, giveRelease, nameRelease } from '../rig/host-release.js';
import { SystemdMachine, releaseTarball } from '../rig/systemd-machine.js';

interface Rollout {
  id: string;
  upgraded: number;
  failed: number;
  stop_reason: string | null;
  ended_at: string | null;
}

const PASSWORD = 'the password of an operator';
const PATIENCE_MS = 300_000;
const folder = mkdtempSync(join(tmpdir(), 'gpurent-upgrade-'));

let machine: SystemdMachine;
let operator = '';

async function api<T>(method: string, path: string, body?: object): Promise<T> {
  const auth = operator === '' ? '' : `-H "Authorization: Bearer ${operator}"`;
  const data = body === undefined ? '' : `-H "Content-Type: application/json" -d '${JSON.stringify(body)}'`;
  return JSON.parse(await machine.sh(`curl -sS -X ${method} ${auth} ${data} http://127.0.0.1:8080${path}`)) as T;
}
const versionOfAgent = async () =>
  (await api<{ items: { agent_version: string; connected: boolean }[] }>('GET', '/v1/operator/machines')).items
    .filter(({ connected }) => connected)
    .map(({ agent_version }) => agent_version)[0];

/** Makes a release of this version out of the installed one, changed by a shell script in its folder, and signs it with a key. */
async function makeRelease(version: string, key: string, change = ':'): Promise<string> {
  const name = `gpurent-${version}-linux-x64`;
  await machine.sh(`
    cd /root/making && rm -rf ${name} && cp -r /opt/gpurent/agent/. ${name}
    cd ${name} && echo '{"version":"${version}"}' >dist/build.json && ${change}
    tar -C /root/making -cf - ${name} | gzip -1 >${RELEASES}/${name}.tar.gz
    cd ${RELEASES} && sha256sum ${name}.tar.gz >SHA256SUMS; rm -rf /root/making/${name}`);
  const sums = join(folder, 'SHA256SUMS');
  writeFileSync(sums, `${await machine.sh(`cat ${RELEASES}/SHA256SUMS`)}\n`);
  execFileSync('minisign', ['-S', '-s', join(folder, `${key}.key`), '-m', sums]);
  await machine.copy(`${sums}.minisig`, RELEASES);
  const path = `${RELEASES}/${name}.tar.gz`;
  await nameRelease(machine, path);
  return path;
}

/** Starts a rollout, and returns how it has ended. */
async function rollOut(): Promise<Rollout> {
  await eventually('the host', async () => (await versionOfAgent()) !== undefined, PATIENCE_MS);
  const { id } = await api<Rollout>('POST', '/v1/operator/rollouts');
  return eventually(
    'the end of the rollout',
    async () => {
      const now = await api<Rollout>('GET', `/v1/operator/rollouts/${id}`);
      return now.ended_at === null ? undefined : now;
    },
    2 * PATIENCE_MS,
  );
}

beforeAll(async () => {
  for (const key of ['owners', 'other'])
    execFileSync('minisign', ['-G', '-W', '-p', join(folder, `${key}.pub`), '-s', join(folder, `${key}.key`)]);
  machine = await SystemdMachine.boot();
  await machine.unpack(releaseTarball(), '/root/release');
  await machine.sh(
    `mkdir /root/making; echo '${PASSWORD}' | /root/release/*/scripts/install-control-plane --operator op@example.com`,
  );
  await machine.sh('gpurent-control-plane ready');
  const credentials = { email: 'op@example.com', password: PASSWORD };
  operator = (await api<{ token: string }>('POST', '/v1/auth/sign-in', credentials)).token;
  await giveRelease(machine);
  const made = await api<{ token: string; install: { url: string } }>('POST', '/v1/operator/enrollment-tokens', {});
  await machine.sh(
    `curl -fsSL ${made.install.url} | GPURENT_ENROLLMENT_TOKEN=${made.token} sh -s -- -- --gpus simulated:2`,
  );
  await eventually('the host', async () => (await versionOfAgent()) !== undefined, PATIENCE_MS);
}, 2 * PATIENCE_MS);
afterAll(async () => {
  await machine.remove();
  rmSync(folder, { recursive: true });
});

it('no agent upgrades itself unless its owner allows it', async () => {
  await makeRelease('9.9.1', 'owners');
  expect(await rollOut()).toMatchObject({ upgraded: 0, failed: 0 });
  await machine.copy(join(folder, 'owners.pub'), '/root');
  await machine.sh(`
    cp /root/owners.pub /etc/gpurent/release.pub
    echo GPURENT_AGENT_UPGRADES=signed >>/etc/gpurent/agent.conf
    systemctl restart gpurent-agent`);
  expect(readFileSync(join(folder, 'owners.pub'), 'utf8')).toContain('minisign public key');
});

it('an agent upgrades itself to what the key of its owner has signed, and its workloads run on', async () => {
  const started = await machine.sh(`systemctl show -P ActiveEnterTimestamp docker`);
  expect(await rollOut()).toMatchObject({ upgraded: 1, failed: 0, stop_reason: null });
  expect(await versionOfAgent()).toBe('9.9.1');
  expect(await machine.sh('gpurent-agent --version')).toBe('9.9.1');
  expect(await machine.sh(`systemctl show -P ActiveEnterTimestamp docker`)).toBe(started);
  expect(await machine.sh('ls /var/lib/gpurent-agent/upgrade 2>/dev/null || true')).toBe('');
});

it.each([
  ['signed by another key', '9.9.2', 'other', ':', /sign/],
  ['older', '9.9.0', 'owners', ':', null],
  ['whose agent does not start', '9.9.3', 'owners', 'echo "process.exit(1)" >dist/bundle/agent.js', /./],
] as const)('stays as it is before a release that is %s', async (_, version, key, change, reason) => {
  await makeRelease(version, key, change);
  const ended = await rollOut();
  expect(ended).toMatchObject({ upgraded: 0, failed: reason === null ? 0 : 1 });
  if (reason) expect(ended.stop_reason).toMatch(reason);
  await eventually('the version of before', async () => (await versionOfAgent()) === '9.9.1', PATIENCE_MS);
  expect(await machine.sh('gpurent-agent --version')).toBe('9.9.1');
  process.stdout.write(`${version}: ${ended.stop_reason}\n`);
});
