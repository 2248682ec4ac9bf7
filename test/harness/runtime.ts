import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PortRange } from '../../agent/domain/ports.js';
import { SimulatedGpus } from '../../agent/host/gpus/simulated.js';
import { EgressGuard } from '../../agent/host/network/egress-guard.js';
import { PortAllocator } from '../../agent/host/ports.js';
import { DockerRuntime } from '../../agent/runtime/docker/docker-runtime.js';
import { Engine } from '../../agent/runtime/docker/engine.js';
import { ImageCache } from '../../agent/runtime/docker/image-cache.js';
import { InstanceNetworks } from '../../agent/runtime/docker/networks.js';
import { portsOf } from '../../agent/runtime/workload.js';
import { systemClock } from '../../shared/clock.js';
import { silentLogger } from '../../shared/logger.js';
import { DOCKER_SOCKET, GUEST_TOOLS } from './docker.js';

const BIND_ADDRESS = '127.0.0.1';
const RESOLVERS = ['192.0.2.53'];
const SHARED_POOL = { first: 0x0ad60000, prefix: 20 };
const OWN_POOL = { first: 0x0ad70000, prefix: 20 };

export interface RuntimeOptions {
  ports: PortRange;
  /** Another Docker than the one that all tests share. */
  socket?: string;
  hasDiskQuota?: boolean;
}

/** The agent's runtime as a host of its own. */
export async function makeRuntime({ ports, socket, hasDiskQuota = false }: RuntimeOptions): Promise<DockerRuntime> {
  const engine = new Engine(socket ?? DOCKER_SOCKET, systemClock);
  const hostId = randomUUID();
  const host = {
    hostId,
    guestTools: GUEST_TOOLS,
    bindAddress: BIND_ADDRESS,
    publicAddress: async () => BIND_ADDRESS,
    resolvers: RESOLVERS,
    hasDiskQuota: async () => hasDiskQuota,
  };
  const held = async () => (await runtime.list()).flatMap(portsOf);
  const allocator = new PortAllocator(ports, BIND_ADDRESS, held);
  const file = join(tmpdir(), `gpurent-images-${hostId}.json`);
  const images = new ImageCache(engine, systemClock, { file, freeShare: async () => 1 }, silentLogger);
  const networks = new InstanceNetworks(engine, hostId, socket === undefined ? SHARED_POOL : OWN_POOL);
  const guard = new EgressGuard({ resolvers: RESOLVERS, allowed: [] });
  const gpus = new SimulatedGpus(1, 'test');
  const runtime: DockerRuntime = new DockerRuntime(engine, systemClock, host, allocator, images, networks, guard, gpus);
  await runtime.prepare();
  return runtime;
}
