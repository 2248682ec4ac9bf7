import { execFileSync } from 'node:child_process';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { statusIs } from '../harness/control-plane.js';
import { containersOf, docker } from '../harness/docker.js';
import { eventually } from '../../scripts/eventually.js';
import { RealPlatform, RealRenter } from '../harness/real.js';

const LONG_MS = 300_000;
const INSTANCES = 32;
/** As many as an organization may have. */
const MOST = 25;

let real: RealPlatform;
beforeAll(async () => {
  // Networks that are made in advance come and go while others are counted.
  const agentEnv = { GPURENT_AGENT_READY_NETWORKS: '0' };
  real = await RealPlatform.start({ ports: 100, gpus: INSTANCES, agentEnv });
});
afterAll(() => real.stop());

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port }, () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

const bridges = () =>
  execFileSync('ip', ['-o', 'link', 'show', 'type', 'bridge'], { encoding: 'utf8' }).match(/: gpr[0-9a-f]+/g) ?? [];
const rules = () => execFileSync('iptables-save', { encoding: 'utf8' }).match(/ gpr[0-9a-f]+ /g) ?? [];

it('32 instances on one host all come up at once, and leave nothing behind', async () => {
  const before = { bridges: bridges(), rules: rules().length };
  const [first, second] = [await RealRenter.on(real), await RealRenter.on(real)];
  const ownerOf = (index: number) => (index < MOST ? first : second);
  const deployed = await Promise.all(Array.from({ length: INSTANCES }, (_, index) => ownerOf(index).deploy()));
  const up: InstanceBody[] = [];
  for (const [index, { id }] of deployed.entries()) {
    up.push(await statusIs(ownerOf(index).api, id, 'running', LONG_MS));
  }
  const ports = up.map(({ ssh_port }) => Number(ssh_port));
  expect(new Set(ports).size).toBe(INSTANCES);
  // A host that is as busy as this tries whether its test workload is reached, which has a network, too.
  await eventually('a network for each', () => bridges().length === before.bridges.length + INSTANCES, LONG_MS);
  const { gpus } = await real.operator.get<{ gpus: { instance_id: string }[] }>(`/v1/operator/machines/${real.hostId}`);
  expect(new Set(gpus.map(({ instance_id }) => instance_id)).size).toBe(INSTANCES);

  for (const [index, { id }] of up.entries()) await ownerOf(index).api.delete(`/v1/instances/${id}`);
  for (const [index, { id }] of up.entries()) {
    const { api } = ownerOf(index);
    await eventually(
      'its end',
      async () => (await api.get<InstanceBody>(`/v1/instances/${id}`)).status === 'destroyed',
      LONG_MS,
    );
    expect(await containersOf(id)).toEqual([]);
  }
  const networks = await docker.listNetworks({ filters: { label: [`gpurent.host=${real.hostId}`] } });
  expect(networks).toEqual([]);
  expect(bridges()).toEqual(before.bridges);
  expect(rules()).toHaveLength(before.rules);
  for (const port of ports) expect(await isOpen(port)).toBe(false);
});
