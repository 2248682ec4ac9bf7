import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createAgent } from '../../agent/app.js';
import type { Agent } from '../../agent/assemble.js';
import { parseConfig } from '../../agent/config.js';
import { Failure } from '../../agent/domain/failure.js';
import { HostNeeds } from '../../agent/host/needs.js';
import type { Remover } from '../../agent/observation/run-recorder.js';
import { SetupError } from '../../shared/coded-error.js';
import { silentLogger } from '../../shared/logger.js';
import { eventually } from '../../scripts/eventually.js';
import { certificateFor } from '../harness/certificate.js';
import { DockerDouble } from '../harness/docker-double.js';
import { ManualClock } from '../harness/manual-clock.js';
import { freePort } from '../harness/webhook-receiver.js';
import { AssembledHost } from './assembled-host.js';

const GUEST_FILES = ['init', 'lib/ld.so', 'sh', 'dropbear', 'dropbearkey', 'sftp-server', 'scp', 'rsync'];

let folder: string;
let docker: DockerDouble;
let agent: Agent | undefined;
const at = (name: string) => join(folder, name);

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-needs-'));
  docker = await DockerDouble.listen(at('docker.sock'));
  docker.root = { ...docker.root, path: folder };
  agent = undefined;
});
afterEach(async () => {
  await agent?.stop();
  docker.close();
  rmSync(folder, { recursive: true });
});

function buildGuestTools(): void {
  for (const name of ['lib', 'bin']) mkdirSync(at(`guest/${name}`), { recursive: true });
  for (const name of GUEST_FILES) {
    const file = at(`guest/${name.includes('/') || name === 'init' ? name : `bin/${name}`}`);
    writeFileSync(file, '');
    chmodSync(file, 0o755);
  }
}

it('an enrolled host starts without what it needs, takes nothing new until it has it, and says what that is', async () => {
  const port = await freePort();
  const occupant = createServer().listen(port, '127.0.0.1');
  await eventually('the port to be taken', () => occupant.listening);
  const [certificate, key] = [at('web.pem'), at('web.key')];
  const config = parseConfig({
    GPURENT_AGENT_STATE_DIR: at('state'),
    GPURENT_AGENT_DOCKER_SOCKET: docker.socket,
    GPURENT_AGENT_GUEST_TOOLS: at('guest'),
    GPURENT_AGENT_CONTAINER_RUNTIME: 'runsc',
    GPURENT_AGENT_EGRESS_GUARD: 'off',
    GPURENT_AGENT_GPUS: 'simulated:1',
    GPURENT_AGENT_VMS: 'off',
    GPURENT_AGENT_METRICS_ADDRESS: `127.0.0.1:${port}`,
    GPURENT_AGENT_PROXY_SOCKET: at('none.sock'),
    GPURENT_AGENT_TLS_CERTIFICATE_FILE: certificate,
    GPURENT_AGENT_TLS_KEY_FILE: key,
  });
  const clock = new ManualClock();
  const identity = { hostId: 'h', controlPlane: '127.0.0.1:1', proof: { kind: 'secret', secret: 's' } } as never;
  agent = await createAgent(config, identity, silentLogger, {} as Remover, clock);
  await agent.start();
  const { obstacle, needs } = await agent.snapshot();
  expect(needs).toEqual([
    expect.stringMatching(/guest\/init is missing; run scripts\/build-guest-tools/),
    expect.stringMatching(/^GPURENT_AGENT_CONTAINER_RUNTIME is "runsc", and Docker knows/),
    expect.stringMatching(/^the certificate for TLS cannot be used: .*web\.pem/),
    expect.stringMatching(/^cannot listen on 127\.0\.0\.1:\d+: .*EADDRINUSE/),
  ]);
  // Metrics that nobody can read keep no renter away.
  expect(obstacle).toBe(needs.slice(0, 3).join('; '));

  buildGuestTools();
  docker.runtimes = { runc: {}, runsc: {} };
  const made = await certificateFor('127.0.0.1');
  writeFileSync(certificate, made.certificate);
  writeFileSync(key, made.key);
  await new Promise((resolve) => occupant.close(resolve));
  await agent.runUpkeep();
  expect(await agent.snapshot()).toMatchObject({ obstacle: '', needs: [] });
  expect((await fetch(`http://127.0.0.1:${port}/metrics`)).status).toBe(200);
});

it('a need that can go is looked at again, another one only until it is met; Docker that is away is no need', async () => {
  let fault: Error | undefined;
  const looks = { goes: 0, stays: 0 };
  const look = (name: keyof typeof looks) => async () => {
    looks[name]++;
    if (fault) throw fault;
  };
  const needs = new HostNeeds(
    { goes: { meet: look('goes'), canGo: true }, stays: { meet: look('stays') } },
    silentLogger,
  );
  await needs.lookAtRequired();
  fault = new SetupError('it is gone');
  await needs.lookAgain();
  expect([needs.obstacle, looks]).toEqual(['it is gone', { goes: 2, stays: 1 }]);
  fault = new Failure('DOCKER_TIMEOUT', 'Docker did not answer');
  await expect(needs.lookAgain()).rejects.toBe(fault);
  expect(needs.obstacle).toBe('it is gone');
  fault = undefined;
  await needs.lookAgain();
  expect([needs.obstacle, needs.faults]).toEqual(['', []]);
});

it('an agent that starts beside a Docker that does not show its instances is connected and says why', async () => {
  const host = new AssembledHost();
  await host.start();
  await eventually('the first heartbeat', () => host.beats.length > 0);
  const cause = new Failure('DOCKER_UNREACHABLE', 'Docker on this host does not show the instances made here');
  host.prepare = () => Promise.reject(new SetupError('Docker does not show 2 instances: undo that', { cause }));
  const beats = host.beats.length;
  await host.restart();
  await host.inTime('a heartbeat', () => host.beats.length > beats);
  expect(host.beats.at(-1)?.heartbeat).toMatchObject({
    dockerAvailable: false,
    obstacle: 'Docker does not show 2 instances: undo that',
  });
  host.prepare = async () => undefined;
  await host.inTime('Docker to be told of', () => host.beats.at(-1)?.heartbeat.dockerAvailable);
  await host.close();
});
