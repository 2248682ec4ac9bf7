import { existsSync, readFileSync, statSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Identity } from '../../agent/link/identity.js';
import { eventually } from '../../scripts/eventually.js';
import type { InstanceBody } from '../harness/api-client.js';
import { statusIs } from '../harness/control-plane.js';
import { RealPlatform, RealRenter } from '../harness/real.js';
import { takePort } from '../harness/worker.js';

const LONG_MS = 180_000;
const METRICS = `127.0.0.1:${takePort()}`;

let real: RealPlatform;
let up: InstanceBody;

beforeAll(async () => {
  real = await RealPlatform.start({ agentEnv: { GPURENT_AGENT_METRICS_ADDRESS: METRICS } });
  const renter = await RealRenter.on(real);
  const { id } = await renter.deploy();
  up = await statusIs(renter.api, id, 'running', LONG_MS);
});
afterAll(() => real.stop());

it('the owner of a host sees what runs on it, and nobody else does', async () => {
  const { code, stdout } = await real.ask('status');
  expect(code).toBe(0);
  expect(stdout).toContain('connected to the control plane');
  expect(stdout).toContain(`${up.id}  container  running  10 GB  SSH on ${up.ssh_port}`);
  expect(JSON.parse((await real.ask('status', '--json')).stdout)).toMatchObject({
    connected: true,
    dockerAvailable: true,
    obstacle: '',
    workloads: [{ instanceId: up.id, state: 'running', desired: 'running' }],
    commands: [{ kind: 'provision', outcome: 'done', count: 1 }],
  });
  expect(statSync(real.path('agent/agent.sock')).mode & 0o777).toBe(0o600);
});

it('Prometheus scrapes it, on loopback, and nothing more', async () => {
  const text = await (await fetch(`http://${METRICS}/metrics`)).text();
  expect(text).toContain('gpurent_agent_connected 1');
  expect(text).toContain('gpurent_agent_workloads{state="running"} 1');
  expect(text).toContain('gpurent_agent_commands_finished{kind="provision",outcome="done"} 1');
  expect(text.match(/gpurent_agent_gpu_healthy\{.*\} 1/g)).toHaveLength(4);
  expect(text.match(/gpurent_agent_gpu_rented\{.*\} 1/g)).toHaveLength(1);
  expect(text).toContain('process_resident_memory_bytes');
  expect((await fetch(`http://${METRICS}/status`)).status).toBe(404);
});

it('the doctor finds nothing bad on a sound host, and says what to do on another', async () => {
  const sound = await real.ask('doctor');
  expect(sound.stdout).not.toContain('BAD');
  expect(sound.code).toBe(0);
  for (const line of ['enrollment', 'guest tools', 'ports', 'egress guard', 'Docker', 'disk quota', 'GPUs']) {
    expect(sound.stdout).toMatch(new RegExp(`^(ok|WARN) +${line}: `, 'm'));
  }
  expect(sound.stdout).toMatch(/WARN +disk quota: one renter can fill the disk of all\n +put Docker’s data on XFS/);
  const without = await real.ask('doctor', '--gpus', 'nvidia');
  expect(without.code).toBe(1);
  expect(without.stdout).toMatch(/BAD +GPUs: .*install the driver/);
});

const enroll = async () => {
  const { token } = await real.operator.post<{ token: string }>('/v1/operator/enrollment-tokens', {});
  const { controlPlane } = JSON.parse(readFileSync(real.path('agent/identity.json'), 'utf8')) as Identity;
  return real.ask('enroll', '--control-plane', controlPlane, '--token', token, '--new');
};

it('an agent that does not run is said so', async () => {
  expect((await enroll()).stderr).toContain('stop it first: "systemctl stop gpurent-agent"');
  await real.killAgent();
  expect((await real.ask('status')).code).toBe(1);
  expect((await real.ask('doctor')).stdout).toMatch(
    /BAD +enrollment: the agent does not run .*\n.*systemctl start gpurent-agent.*\nok +enrollment: .* which accepts this host/,
  );
});

it('a host whose machine was removed is told the way back, and what it leaves when it takes it', async () => {
  await eventually('its absence', async () => !(await real.isConnected()), LONG_MS);
  await real.operator.post(`/v1/operator/machines/${real.hostId}/lost`);
  await real.operator.delete(`/v1/operator/machines/${real.hostId}`);
  expect((await real.ask('doctor')).stdout).toMatch(/BAD +enrollment: .* an operator has removed this host.*\n.*--new/);
  const { code, stdout, stderr } = await enroll();
  expect(code).toBe(0);
  const { host_id: hostId } = JSON.parse(stdout) as { host_id: string };
  expect(hostId).not.toBe(real.hostId);
  expect(stderr).toMatch(
    new RegExp(`stays: containers of machine ${real.hostId}, .*\\(running\\).*docker rm --force --volumes`),
  );
  expect(stderr).toContain(`is put aside: identity and journal of machine ${real.hostId}`);
  expect(existsSync(real.path(`agent/before-${real.hostId}/journal.db`))).toBe(true);
  const doctor = (await real.ask('doctor')).stdout;
  expect(doctor).toMatch(new RegExp(`WARN +left workloads: containers of machine ${real.hostId}`));
});
