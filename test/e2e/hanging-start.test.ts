import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import type { InstanceBody } from '../harness/api-client.js';
import { statusIs } from '../harness/control-plane.js';
import { DOCKER_SOCKET } from '../harness/docker.js';
import { RealPlatform, RealRenter } from '../harness/real.js';

const LONG_MS = 180_000;

const folder = mkdtempSync(join(tmpdir(), 'gpurent-gate-'));
const socketPath = join(folder, 'docker.sock');
const held = new Set<Socket>();
let hangs = false;
let gate: Server;
let real: RealPlatform;
let up: InstanceBody;
let renter: RealRenter;

/** A Docker that hangs: it is connected to, and says nothing. */
function pass(socket: Socket): void {
  socket.on('error', () => socket.destroy());
  if (hangs) return void held.add(socket);
  const docker = connect(DOCKER_SOCKET);
  docker.on('error', () => socket.destroy());
  socket.on('close', () => docker.destroy());
  socket.pipe(docker).pipe(socket);
}

beforeAll(async () => {
  gate = createServer({ allowHalfOpen: true }, pass).listen(socketPath);
  real = await RealPlatform.start({ agentEnv: { GPURENT_AGENT_DOCKER_SOCKET: socketPath } });
  renter = await RealRenter.on(real);
  const { id } = await renter.deploy();
  up = await statusIs(renter.api, id, 'running', LONG_MS);
});
afterAll(async () => {
  await real.stop();
  gate.close();
  rmSync(folder, { recursive: true, force: true });
});

it('an agent that is started while Docker hangs is connected, says so, and goes on once Docker answers', async () => {
  await real.killAgent();
  await eventually('its connection to be gone', async () => !(await real.isConnected()));
  hangs = true;
  await real.startAgent();
  expect(JSON.parse((await real.ask('status', '--json')).stdout)).toMatchObject({
    connected: true,
    dockerAvailable: false,
    workloads: [],
  });
  expect((await real.ask('status')).stdout).toContain('Docker does NOT answer');
  expect((await renter.api.get<InstanceBody>(`/v1/instances/${up.id}`)).status).toBe('running');
  await renter.api.post(`/v1/instances/${up.id}/stop`);

  hangs = false;
  for (const socket of held) socket.destroy();
  await statusIs(renter.api, up.id, 'stopped', LONG_MS);
  const { id } = await eventually('something new to be taken', () => renter.deploy().catch(() => undefined), LONG_MS);
  await statusIs(renter.api, id, 'running', LONG_MS);
});
