import type Docker from 'dockerode';
import { SetupError } from '../../../shared/coded-error.js';
import { DEADLINE_MS, imageOf, statusOf, type Engine } from './engine.js';
import { CANARY_OF, GPU_TEST_LABEL, LABEL } from './labels.js';
import { OWN_IMAGES } from './images/pulled-images.js';
import { PROBE_IMAGES } from './data-roots/quota-probe.js';
import { JOB_PREFIX } from './vm/runner-job.js';

/** Throws SetupError while workloads of renters are on this host, running or not, under any identity of the host. */
export async function requireNoWorkloads(engine: Engine): Promise<void> {
  const count = (await listContainers(engine)).filter(isWorkload).length;
  if (count === 0) return;
  throw new SetupError(
    `${count === 1 ? 'a workload' : `${count} workloads`} of renters ${count === 1 ? 'is' : 'are'} still on this host (docker ps --all --filter label=${LABEL.instance})`,
  );
}

/**
 * Removes what the agent has left in Docker besides renters' workloads: test workloads, networks with their bridges,
 * and with `images` also the images that it has pulled and made. Throws SetupError while there are workloads.
 */
export async function removeTraces(engine: Engine, { images }: { images: boolean }): Promise<void> {
  await requireNoWorkloads(engine);
  for (const container of (await listContainers(engine)).filter(isOwn))
    await remove(engine, 'a container', (docker) => docker.getContainer(container.Id).remove({ force: true, v: true }));
  const networks = await engine.call('list networks', DEADLINE_MS.inspect, (docker) =>
    docker.listNetworks({ filters: { label: [LABEL.host] } }),
  );
  for (const { Id } of networks) await remove(engine, 'a network', (docker) => docker.getNetwork(Id).remove());
  if (!images) return;
  const all = await engine.call('list images', DEADLINE_MS.inspect, (docker) => docker.listImages());
  const own = all
    .flatMap(({ RepoTags }) => (RepoTags as string[] | null) ?? [])
    .filter((tag) => tag.startsWith(OWN_IMAGES) || tag.startsWith(PROBE_IMAGES));
  for (const tag of own) await remove(engine, 'an image', (docker) => imageOf(docker, tag).remove());
}

function isWorkload({ Labels }: Docker.ContainerInfo): boolean {
  const host = Labels[LABEL.host] ?? '';
  return LABEL.instance in Labels && host !== '' && !host.startsWith(CANARY_OF);
}

/** Returns whether the container is a job, a canary, a GPU test or a probe of the agent itself. */
function isOwn({ Labels, Names, Image }: Docker.ContainerInfo): boolean {
  const isJob = Names.some((name) => name.startsWith(`/${JOB_PREFIX}`)) || GPU_TEST_LABEL in Labels;
  return isJob || (Labels[LABEL.host] ?? '').startsWith(CANARY_OF) || Image.startsWith(PROBE_IMAGES);
}

function listContainers(engine: Engine): Promise<Docker.ContainerInfo[]> {
  return engine.call('list containers', DEADLINE_MS.inspect, (docker) => docker.listContainers({ all: true }));
}

/** Makes a call that removes something; a 404 is a success, because then somebody else has removed it meanwhile. */
async function remove(engine: Engine, what: string, call: (docker: Docker) => Promise<unknown>): Promise<void> {
  await engine.call(`remove ${what}`, DEADLINE_MS.remove, call).catch((error: unknown) => {
    if (statusOf(error) !== 404) throw error;
  });
}
