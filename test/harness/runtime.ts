import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PortRange } from '../../agent/domain/ports.js';
import type { LocalImages } from '../../agent/domain/local-images.js';
import { networkOf } from '../../agent/domain/subnets.js';
import type { GpuDriver } from '../../agent/host/gpus/driver.js';
import { SimulatedGpus } from '../../agent/host/gpus/simulated.js';
import { EgressGuard } from '../../agent/host/network/egress-guard.js';
import { PortAllocator } from '../../agent/host/ports.js';
import { AccessFiles } from '../../agent/runtime/docker/files/access-files.js';
import { Containers } from '../../agent/runtime/docker/containers/containers.js';
import { DataRootGuard } from '../../agent/runtime/docker/data-roots/data-root-guard.js';
import { DataRootNotes } from '../../agent/runtime/docker/data-roots/data-root-notes.js';
import { DockerRuntime } from '../../agent/runtime/docker/docker-runtime.js';
import { Engine } from '../../agent/runtime/docker/engine.js';
import { EtcFiles } from '../../agent/runtime/docker/files/etc-files.js';
import { ImageCache } from '../../agent/runtime/docker/images/image-cache.js';
import { Images } from '../../agent/runtime/docker/images/images.js';
import { ImagePuller } from '../../agent/runtime/docker/images/image-puller.js';
import { InstanceNetworks } from '../../agent/runtime/docker/networks/networks.js';
import { BaseDisks } from '../../agent/runtime/docker/vm/base-disks.js';
import { RunnerJobs } from '../../agent/runtime/docker/vm/runner-job.js';
import { VirtualMachines } from '../../agent/runtime/docker/vm/virtual-machines.js';
import { VmSupport } from '../../agent/runtime/docker/vm/vm-support.js';
import { portsOf } from '../../agent/runtime/workload.js';
import { systemClock } from '../../shared/clock.js';
import { silentLogger } from '../../shared/logger.js';
import { DOCKER_SOCKET, GUEST_TOOLS, VM_RUNNER } from './docker.js';
import { startRelay } from './relay.js';
import { OWN_SUBNET, SHARED_SUBNET } from './worker.js';

const BIND_ADDRESS = '127.0.0.1';
/** On an emulated processor, which every machine has. */
const VMS = { accelerator: 'tcg', runner: VM_RUNNER, stopSeconds: 2 } as const;
export const PULLS = { leastBytesPerSecond: 1_000_000, longestMs: 3_600_000, mostBytes: 50_000_000_000 };
const RESOLVERS = ['192.0.2.53'];

export interface RuntimeOptions {
  ports: PortRange;
  /** Another Docker than the one that all tests share. */
  socket?: string;
  hasDiskQuota?: boolean;
  localImages?: LocalImages;
  /** How many networks are made in advance. */
  readyNetworks?: number;
  /** The host whose agent this is; another one without it. */
  hostId?: string;
  gpus?: GpuDriver;
}

/** The agent's runtime as a host of its own. */
export async function makeRuntime(options: RuntimeOptions): Promise<DockerRuntime> {
  const { ports, socket, hasDiskQuota = false, localImages = 'any', readyNetworks, hostId = randomUUID() } = options;
  const engine = new Engine(socket ?? DOCKER_SOCKET, systemClock);
  const host = {
    hostId,
    guestTools: GUEST_TOOLS,
    bindAddress: BIND_ADDRESS,
    publicAddress: async () => BIND_ADDRESS,
    resolvers: RESOLVERS,
    containerRuntime: null,
    hasDiskQuota: async () => hasDiskQuota,
  };
  const held = async () => (await runtime.list()).flatMap(portsOf);
  const allocator = new PortAllocator(ports, BIND_ADDRESS, held);
  const file = join(tmpdir(), `gpurent-images-${hostId}.json`);
  const cache = new ImageCache(engine, systemClock, { file, freeShare: async () => 1 }, silentLogger);
  const puller = new ImagePuller(
    engine,
    systemClock,
    { limits: PULLS, allowed: null, freeShare: async () => 1 },
    silentLogger,
    startRelay,
  );
  const pool = networkOf(socket === undefined ? SHARED_SUBNET : OWN_SUBNET);
  if (!pool) throw new Error('the networks of instances are no network');
  const networks = new InstanceNetworks(engine, hostId, pool, systemClock, readyNetworks);
  const guard = new EgressGuard({ resolvers: RESOLVERS, allowed: [], instances: '10.213.0.0/16', mostMbit: null });
  const { gpus = new SimulatedGpus(1, 'test') } = options;
  const jobs = new RunnerJobs(engine, hostId, VMS.runner);
  const vmParts = {
    disks: new BaseDisks(engine, jobs, cache, VMS.runner),
    support: new VmSupport(engine, jobs, VMS, gpus, systemClock),
    passthrough: gpus.passthrough,
  };
  const accessFiles = new AccessFiles(join(tmpdir(), `gpurent-access-${hostId}`));
  const etcFiles = new EtcFiles(join(tmpdir(), `gpurent-etc-${hostId}`));
  const images = new Images(engine, puller, cache, localImages);
  const kinds = {
    container: new Containers(engine, host, images, gpus, etcFiles, accessFiles),
    vm: new VirtualMachines({ engine, clock: systemClock, host, images, settings: VMS, ...vmParts }),
  };
  const notes = new DataRootNotes(join(tmpdir(), `gpurent-data-roots-${hostId}`));
  const dataRoot = new DataRootGuard(engine, notes, hostId, silentLogger);
  const parts = { engine, clock: systemClock, host, kinds, ports: allocator, networks, guard, dataRoot, accessFiles };
  const runtime: DockerRuntime = new DockerRuntime(parts);
  await runtime.prepare();
  await networks.open();
  return runtime;
}
