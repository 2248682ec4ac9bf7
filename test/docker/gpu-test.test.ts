import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DockerStarter } from '../../agent/gpu-test/docker-starter.js';
import { NvidiaGpus } from '../../agent/host/nvidia/nvidia.js';
import { Engine } from '../../agent/runtime/docker/engine.js';
import { GPU_TEST_LABEL } from '../../agent/runtime/docker/labels.js';
import { eventually } from '../../scripts/eventually.js';
import { systemClock } from '../../shared/clock.js';
import { CommandOutcome, type CommandResult } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { AssembledHost } from '../agent/assembled-host.js';
import { advanceUntil } from '../harness/advance-until.js';
import { BusyGpus } from '../harness/busy-gpus.js';
import { GUEST_TOOLS, SAMPLE_IMAGE } from '../harness/docker.js';
import { makeRuntime } from '../harness/runtime.js';
import { takePorts } from '../harness/worker.js';
import { NvidiaRig } from '../rig/nvidia-rig.js';
import { OwnDocker } from '../rig/own-docker.js';
import { specOf } from '../suites/runtime-suite.js';

const HOST = randomUUID();
const UNMET = 'nvidia-container-cli: requirement error: unsatisfied condition: cuda>=99, please update your driver';
const CDI_MODE = 'invoking the NVIDIA Container Runtime Hook directly is not supported in CDI mode';

/** GPUs in memory that containers get as NVIDIA's. */
class RiggedGpus extends BusyGpus {
  override attachment(uuids: readonly string[]): ReturnType<BusyGpus['attachment']> {
    return new NvidiaGpus(systemClock).attachment(uuids);
  }
}

let rig: NvidiaRig;
let own: OwnDocker;
let host: AssembledHost;
let starter: DockerStarter;
let pinned: string;
beforeAll(async () => {
  rig = new NvidiaRig([]);
  own = await OwnDocker.start({ path: [rig.bin] });
  host = new AssembledHost();
  host.gpus = new RiggedGpus(1, 'test');
  pinned = (await host.gpus.inventory()).gpus[0]?.uuid ?? '';
  const facts = { guestTools: GUEST_TOOLS, containerRuntime: null, dockerPidFile: '/none' };
  starter = new DockerStarter(new Engine(own.socket, systemClock), host.gpus, HOST, facts, systemClock);
  host.gpuStarter = starter;
  host.realRuntime = await makeRuntime({ ports: takePorts(5), socket: own.socket, hostId: HOST, gpus: host.gpus });
  await host.start();
  await host.inTime('its first heartbeat', () => host.beats.length > 0);
});
afterAll(async () => {
  await host.close();
  await own.remove();
  rig.remove();
});

const obstacle = async () => (await host.agent?.snapshot())?.obstacle;
const marked = () => own.docker.listContainers({ all: true, filters: { label: [GPU_TEST_LABEL] } });

/** Has the control plane deploy an image with the GPU. */
async function deploy(image: string, number: number): Promise<CommandResult> {
  const spec = specOf(image, { gpuUuids: [pinned], sshAuthorizedKey: '', interactive: false });
  const ids = { commandId: `c${number}`, instanceId: `i${number}`, sequence: 1, requestId: '', access: undefined };
  const desired = { $case: 'running' as const, value: { mayCreate: true, spec } };
  host.send({ $case: 'command', value: { ...ids, desired } });
  // The agent looks again and again whether what it has started is up; on a busy machine it is not at the first look.
  const passing = { clock: host.clock, stepMs: 5, parties: [() => own.docker.ping()] };
  return advanceUntil('its result', passing, () => {
    const results = host.said.flatMap((said) => (said.$case === 'commandResult' ? [said.value] : []));
    return results.find(
      ({ commandId, outcome }) => commandId === ids.commandId && outcome !== CommandOutcome.COMMAND_OUTCOME_ACCEPTED,
    );
  });
}

/** Lets minutes pass, and the tests that fall due come to their end. */
async function pass(minutes: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute++) {
    host.clock.advance(61_000);
    await eventually('the test to be over', async () => (await marked()).length === 0);
  }
}

it('a container with a GPU and nothing else starts, and leaves nothing', async () => {
  expect(await host.agent?.testGpus()).toEqual({ kind: 'passed', reason: '' });
  const seen = rig.configurations().at(-1);
  expect(seen?.process.env).toContain(`NVIDIA_VISIBLE_DEVICES=${pinned}`);
  expect(seen?.root).toMatchObject({ readonly: true });
  expect(seen?.process.capabilities?.bounding ?? []).toEqual([]);
  expect(await marked()).toEqual([]);
});

it('what a killed agent has left is removed, and no other container', async () => {
  const make = (Labels: Record<string, string>) =>
    own.docker.createContainer({ Image: SAMPLE_IMAGE, Cmd: ['sleep', '1000'], Labels });
  const [left, other] = [await make({ [GPU_TEST_LABEL]: HOST }), await make({ [GPU_TEST_LABEL]: 'another host' })];
  await starter.prune();
  expect((await marked()).map(({ Id }) => Id)).toEqual([other.id]);
  await expect(left.inspect()).rejects.toMatchObject({ statusCode: 404 });
  await other.remove();
});

it('images that ask for too much leave the host on the market', async () => {
  rig.refuses('NVIDIA_REQUIRE_CUDA', UNMET);
  const container = await own.docker.createContainer({ Image: SAMPLE_IMAGE, Cmd: ['true'] });
  await container.commit({ repo: 'gpurent/new', tag: '1', changes: 'ENV NVIDIA_REQUIRE_CUDA=cuda>=99' });
  await container.remove();
  for (let number = 0; number < 10; number++) {
    expect((await deploy('gpurent/new:1', number)).message).toMatch(/requires cuda>=99/);
    await pass(1);
  }
  expect(await host.agent?.testGpus()).toEqual({ kind: 'passed', reason: '' });
  expect(await obstacle()).toBe('');
});

it('a hook that refuses all of them takes it off the market, and back once it works', async () => {
  rig.refuses('process', CDI_MODE);
  const { message } = await deploy(SAMPLE_IMAGE, 10);
  expect(message).toContain(CDI_MODE);
  await host.agent?.testGpus();
  expect(await obstacle()).toBe('');
  host.clock.advance(61_000);
  expect(await host.agent?.testGpus()).toMatchObject({
    kind: 'failed',
    reason: expect.stringContaining(CDI_MODE) as string,
  });
  expect(await obstacle()).toMatch(/^no container with a GPU starts on this host: .*CDI mode/);
  await host.inTime('the heartbeat', () => host.beats.at(-1)?.heartbeat.obstacle.includes(CDI_MODE));
  rig.refuses('', '');
  for (const known of ['no container with a GPU starts', '']) {
    await host.agent?.testGpus();
    expect((await obstacle())?.slice(0, 30)).toBe(known);
  }
  expect(await marked()).toEqual([]);
  expect((await deploy(SAMPLE_IMAGE, 11)).outcome).toBe(CommandOutcome.COMMAND_OUTCOME_DONE);
});
