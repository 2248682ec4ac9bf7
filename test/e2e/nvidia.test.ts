import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { statusIs } from '../harness/control-plane.js';
import { containersOf } from '../harness/docker.js';
import { eventually } from '../../scripts/eventually.js';
import { NvidiaRig } from '../rig/nvidia-rig.js';
import { OwnDocker } from '../rig/own-docker.js';
import { RealPlatform, RealRenter } from '../harness/real.js';

const LONG_MS = 180_000;
const GPUS = ['a', 'b'].map((letter) => `GPU-${letter.repeat(8)}-0000-4000-8000-000000000000`);

let rig: NvidiaRig;
let own: OwnDocker;
let real: RealPlatform;
let renter: RealRenter;

beforeAll(async () => {
  rig = new NvidiaRig(GPUS.map((uuid) => ({ uuid })));
  own = await OwnDocker.start({ path: [rig.bin] });
  real = await RealPlatform.start({
    dockerSocket: own.socket,
    agentEnv: { GPURENT_AGENT_GPUS: 'nvidia', PATH: `${rig.bin}:${process.env['PATH']}` },
  });
  renter = await RealRenter.on(real);
});
afterAll(async () => {
  await real.stop();
  await own.remove();
  rig.remove();
});

interface MachineBody {
  driver_version: string;
  cuda_version: string;
  gpus: { uuid: string; model: string; healthy: boolean; reason: string; instance_id: string | null }[];
}

const machine = () => real.operator.get<MachineBody>(`/v1/operator/machines/${real.hostId}`);
const offerState = async () => (await renter.api.get<{ state: string }>(`/v1/offers/${renter.offerId}`)).state;
const running = (id: string) => statusIs(renter.api, id, 'running', LONG_MS);

async function gpuOf(id: string): Promise<string> {
  return (await machine()).gpus.find((gpu) => gpu.instance_id === id)?.uuid ?? '';
}

/** What NVIDIA's runtime was asked to show to the newest container of an instance: of two words, the last one counts. */
async function visibleTo(id: string): Promise<string[]> {
  const [container] = await containersOf(id, own.docker);
  const env = rig.environments().find((entry) => entry.id === container?.Id)?.env ?? [];
  return [
    ...new Map(
      env.filter((entry) => entry.startsWith('NVIDIA_')).map((entry) => [entry.split('=')[0], entry]),
    ).values(),
  ];
}

it('the driver’s own tool says what the host has', async () => {
  expect(await machine()).toMatchObject({
    driver_version: '550.54.15',
    cuda_version: '12.4',
    gpus: GPUS.map((uuid) => ({ uuid, model: 'NVIDIA H100 80GB HBM3', healthy: true })),
  });
});

it('two instances are pinned to different GPUs, which they release and claim again', async () => {
  const [one, two] = [await renter.deploy(), await renter.deploy()];
  for (const { id } of [one, two]) await running(id);
  const [first, second] = [await gpuOf(one.id), await gpuOf(two.id)];
  expect([first, second].sort()).toEqual(GPUS);
  expect(await visibleTo(one.id)).toContain(`NVIDIA_VISIBLE_DEVICES=${first}`);
  expect(await visibleTo(two.id)).toContain(`NVIDIA_VISIBLE_DEVICES=${second}`);

  // Released: only once nothing computes on it any more.
  const held = rig.gpus.find(({ uuid }) => uuid === first);
  if (!held) throw new Error('there is no such GPU');
  held.processes = [{ pid: 4021, name: 'python' }];
  rig.report();
  const { id: organization } = await renter.api.get<{ id: string }>('/v1/orgs/current');
  await real.operator.post(`/v1/operator/organizations/${organization}/dispute`);
  await renter.api.post(`/v1/instances/${one.id}/stop`);
  await eventually(
    'the container to be down',
    async () => (await containersOf(one.id, own.docker))[0]?.State === 'exited',
    LONG_MS,
  );
  expect(await gpuOf(one.id)).toBe(first);
  held.processes = [];
  rig.report();
  await statusIs(renter.api, one.id, 'stopped', LONG_MS);
  expect(await renter.api.get(`/v1/instances/${one.id}`)).toMatchObject({
    gpus_released: true,
    gpu_release: 'released',
  });
  expect(await gpuOf(one.id)).toBe('');

  // Claimed again, the same one.
  await real.operator.delete(`/v1/operator/organizations/${organization}/dispute`);
  await renter.start(one.id);
  await running(one.id);
  expect(await gpuOf(one.id)).toBe(first);
  expect(await renter.api.get<InstanceBody>(`/v1/instances/${one.id}`)).toMatchObject({ gpus_released: false });
  for (const { id } of [one, two]) await renter.destroy(id);
});

it('no word of an image, a template or a renter shows another GPU', async () => {
  const container = await own.docker.createContainer({ Image: 'gpurent/sample:1', Cmd: ['true'] });
  const changes = ['ENV NVIDIA_VISIBLE_DEVICES=all', 'ENV NVIDIA_MIG_CONFIG_DEVICES=all', 'ENV NVIDIA_GDS=enabled'];
  await container.commit({ repo: 'gpurent/greedy', tag: '1', changes: changes.join('\n') });
  await container.remove();
  const all = [{ key: 'NVIDIA_VISIBLE_DEVICES', value: 'all', secret: false }];
  const greedy = await RealRenter.on(real, { image: 'gpurent/greedy:1', env: all });
  const { id } = await greedy.deploy({ env_overrides: all });
  const up = await statusIs(greedy.api, id, 'running', LONG_MS);
  const visible = await visibleTo(id);
  expect(visible).toContain(`NVIDIA_VISIBLE_DEVICES=${await gpuOf(id)}`);
  expect(visible).toEqual(expect.arrayContaining(['NVIDIA_MIG_CONFIG_DEVICES=', 'NVIDIA_GDS=']));
  expect(visible.join()).not.toContain('all');
  expect(await greedy.ssh(up, 'echo $NVIDIA_VISIBLE_DEVICES')).toBe(await gpuOf(id));
  await greedy.destroy(id);
});

it('a GPU that is broken leaves the market with a reason', async () => {
  rig.logKernel('[99.2] NVRM: Xid (PCI:0000:01:00): 79, pid=77, GPU has fallen off the bus.\n');
  await real.upkeep();
  const [broken] = await eventually(
    'the fault to be seen',
    async () => {
      const faulty = (await machine()).gpus.filter(({ healthy }) => !healthy);
      return faulty.length > 0 && faulty;
    },
    LONG_MS,
  );
  expect(broken).toMatchObject({ uuid: GPUS[0] });
  expect(broken?.reason).toMatch(/Xid 79 .*fallen off the bus/);
  const { code, stdout } = await real.ask('doctor');
  expect(code).toBe(1);
  expect(stdout).toMatch(/BAD +GPUs: 0: NVIDIA H100.*Xid 79/);
  expect(stdout).toMatch(/ok +container toolkit/);
  expect(stdout).toMatch(/ok +test container: started with a GPU/);
  // Another one has gone, so that the tool fails for all: what was broken stays so.
  rig.loses(GPUS[1] ?? '');
  await real.upkeep();
  await eventually(
    'both to be off the market',
    async () => (await machine()).gpus.every(({ healthy }) => !healthy),
    LONG_MS,
  );
  rig.loses('');
  await real.upkeep();
  await eventually('the sound one to be back', async () => (await machine()).gpus[1]?.healthy === true, LONG_MS);
  expect((await machine()).gpus[0]).toMatchObject({ healthy: false });
  const { id } = await renter.deploy();
  await running(id);
  expect(await gpuOf(id)).toBe(GPUS[1]);
  expect(await offerState()).toBe('unavailable');
  await renter.destroy(id);
});
