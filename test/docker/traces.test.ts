import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { EgressGuard, removeEgressRules } from '../../agent/host/network/egress-guard.js';
import { Engine } from '../../agent/runtime/docker/engine.js';
import { CANARY_OF, GPU_TEST_LABEL, LABEL } from '../../agent/runtime/docker/labels.js';
import { OWN_IMAGES } from '../../agent/runtime/docker/images/pulled-images.js';
import { requireNoWorkloads, removeTraces } from '../../agent/runtime/docker/traces.js';
import { systemClock } from '../../shared/clock.js';
import { SAMPLE_IMAGE } from '../harness/docker.js';
import { OwnDocker } from '../rig/own-docker.js';
import { OwnFirewall } from '../rig/own-firewall.js';

const run = promisify(execFile);

let own: OwnDocker;
let docker: OwnDocker['docker'];
let engine: Engine;
let firewall: OwnFirewall;
beforeAll(async () => {
  firewall = new OwnFirewall();
  own = await OwnDocker.start();
  ({ docker } = own);
  engine = new Engine(own.socket, systemClock);
});
afterAll(async () => {
  await own.remove();
  firewall.remove();
});

const make = (name: string, Labels: Record<string, string> = {}) =>
  docker.createContainer({ name, Image: SAMPLE_IMAGE, Cmd: ['true'], Labels });
const isThere = (look: Promise<unknown>) =>
  look.then(
    () => true,
    () => false,
  );

it('what the agent leaves in Docker goes, but not while there are workloads, and nothing of anybody else', async () => {
  const mark = randomUUID();
  const names = ['canary', 'gpurent-job', 'another', 'workload', 'gpu-test'].map((name) => `${name}-${mark}`);
  const [canary = '', job = '', another = '', workload = '', gpuTest = ''] = names;
  await make(canary, { [LABEL.host]: `${CANARY_OF}${mark}`, [LABEL.instance]: mark });
  await make(job, { [LABEL.host]: '' });
  await make(another);
  await make(gpuTest, { [GPU_TEST_LABEL]: mark });
  await make(workload, { [LABEL.host]: mark, [LABEL.instance]: mark });
  await docker.createNetwork({ Name: `own-${mark}`, Labels: { [LABEL.host]: mark } });
  await docker.createNetwork({ Name: `another-${mark}` });
  await docker.getImage(SAMPLE_IMAGE).tag({ repo: `${OWN_IMAGES}pulled/${mark}`, tag: '1' });
  const image = docker.getImage(`${OWN_IMAGES}pulled/${mark}:1`);
  const left = async () => ({
    containers: await Promise.all(names.map((name) => isThere(docker.getContainer(name).inspect()))),
    networks: await Promise.all(
      ['own', 'another'].map((name) => isThere(docker.getNetwork(`${name}-${mark}`).inspect())),
    ),
    image: await isThere(image.inspect()),
  });
  try {
    await expect(removeTraces(engine, { images: true })).rejects.toThrow(/of renters (is|are) still on this host/);
    expect(await left()).toEqual({ containers: [true, true, true, true, true], networks: [true, true], image: true });
    await docker.getContainer(workload).remove();
    await requireNoWorkloads(engine);
    await removeTraces(engine, { images: false });
    expect(await left()).toEqual({
      containers: [false, false, true, false, false],
      networks: [false, true],
      image: true,
    });
    await removeTraces(engine, { images: true });
    expect((await left()).image).toBe(false);
  } finally {
    await Promise.allSettled(names.map((name) => docker.getContainer(name).remove({ force: true })));
    await Promise.allSettled(['own', 'another'].map((name) => docker.getNetwork(`${name}-${mark}`).remove()));
    await image.remove().catch(() => undefined);
  }
});

it('the rules of egress go, and those of Docker stay', async () => {
  const saved = async () => (await run('iptables-save', ['-t', 'filter'])).stdout;
  const rulesOf = (text: string) => text.split('\n').filter((line) => /^[:-]/.test(line) && !line.includes('GPURENT'));
  const guard = new EgressGuard({ resolvers: ['1.1.1.1'], allowed: [], instances: '10.213.0.0/16', mostMbit: null });
  await guard.ensure();
  const before = await saved();
  expect(before).toContain('GPURENT-FORWARD');
  await removeEgressRules();
  const after = await saved();
  expect(after).not.toContain('GPURENT');
  const withoutCounts = (line: string) => line.replace(/ \[\d+:\d+\]$/, '');
  expect(rulesOf(after).map(withoutCounts)).toEqual(rulesOf(before).map(withoutCounts));
  // Once more changes nothing, and fails nobody.
  await removeEgressRules();
});
