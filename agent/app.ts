import { mkdirSync } from 'node:fs';
import { uptime } from 'node:os';
import { join } from 'node:path';
import { systemClock, type Clock } from '../shared/clock.js';
import { messageOf } from '../shared/coded-error.js';
import type { Inventory } from '../shared/gen/gpurent/agent/v1/agent.js';
import type { Logger } from '../shared/logger.js';
import { assembleAgent, type Agent } from './assemble.js';
import { agentSocket, journalFile, type AgentConfig } from './config.js';
import { dockerChecks } from './doctor/docker-checks.js';
import type { Check } from './doctor/finding.js';
import { gpuChecks } from './doctor/gpu-checks.js';
import { hostChecks } from './doctor/host-checks.js';
import { speaksHttp } from './endpoints/answers.js';
import type { GpuDriver } from './host/gpus/driver.js';
import { NvidiaGpus } from './host/gpus/nvidia.js';
import { SimulatedGpus } from './host/gpus/simulated.js';
import { requireGuestTools } from './host/guest-tools.js';
import { diskFreeGb, freeShareOf, publicAddressOf, readBootId, readInventory } from './host/inventory.js';
import { EgressGuard } from './host/network/egress-guard.js';
import { PortAllocator } from './host/ports.js';
import { StatusServer } from './insight/status-server.js';
import { Journal } from './journal/journal.js';
import { dialer } from './link/dial.js';
import type { Identity } from './link/identity.js';
import { AccessProxy } from './proxy/access-proxy.js';
import { DockerRuntime } from './runtime/docker/docker-runtime.js';
import { EngineWatch } from './runtime/docker/docker-watch.js';
import { Engine } from './runtime/docker/engine.js';
import { ImageCache } from './runtime/docker/image-cache.js';
import { InstanceNetworks } from './runtime/docker/networks.js';
import { probeDiskQuota } from './runtime/docker/quota-probe.js';
import { portsOf } from './runtime/workload.js';

/** What this host tells of itself. Throws SetupError when Docker or the GPUs cannot be read. */
export async function inspectHost(config: AgentConfig, clock: Clock = systemClock): Promise<Inventory> {
  const engine = new Engine(config.dockerSocket, clock);
  await engine.require(config.dockerSocket);
  requireGuestTools(config.guestTools);
  const hasDiskQuota = await probeDiskQuota(engine, config.guestTools).catch(() => false);
  const docker = { root: (await engine.info()).DockerRootDir, hasDiskQuota };
  return readInventory(config, gpuDriver(config, clock), docker);
}

/** An agent on this machine's Docker and GPUs. */
export function createAgent(
  config: AgentConfig,
  identity: Identity,
  logger: Logger,
  clock: Clock = systemClock,
): Agent {
  mkdirSync(config.stateDir, { recursive: true, mode: 0o700 });
  requireGuestTools(config.guestTools);
  const engine = new Engine(config.dockerSocket, clock);
  const gpus = gpuDriver(config, clock);
  let hasDiskQuota = false;
  const heldPorts = async () => (await runtime.list()).flatMap(portsOf);
  const ports = new PortAllocator(config.ports, config.bindAddress, heldPorts);
  const { hostId } = identity;
  const root = rootOf(engine);
  const freeShare = async () => freeShareOf(await root());
  const images = new ImageCache(engine, clock, { file: join(config.stateDir, 'images.json'), freeShare }, logger);
  const networks = new InstanceNetworks(engine, hostId, config.subnet);
  const guard = config.egress ? new EgressGuard(config.egress) : { ensure: async () => {} };
  const host = {
    ...config,
    hostId,
    publicAddress: () => publicAddressOf(config),
    hasDiskQuota: async () => hasDiskQuota,
  };
  const runtime: DockerRuntime = new DockerRuntime(engine, clock, host, ports, images, networks, guard, gpus);
  const agent = assembleAgent({
    runtime,
    docker: new EngineWatch(engine, identity.hostId, config.dockerPidFile),
    gpus,
    web: {
      doors: new AccessProxy(config.bindAddress, logger),
      publicAddress: host.publicAddress,
      answers: speaksHttp,
    },
    upkeep: {
      'the guard of egress': () => guard.ensure(),
      'the cache of images': async () => {
        await images.collect();
      },
    },
    dial: dialer(identity),
    clock,
    random: Math.random,
    logger,
    journal: new Journal(journalFile(config)),
    async prepare() {
      await engine.require(config.dockerSocket);
      await guard.ensure();
      await runtime.prepare();
      hasDiskQuota = await probeDiskQuota(engine, config.guestTools).catch((error: unknown) => {
        logger.warn(`whether disks are held to their size cannot be found out: ${messageOf(error)}`);
        return false;
      });
      await gpus.inventory();
    },
    diskFreeGb: async () => diskFreeGb(await root()),
    describe: async () => readInventory(config, gpus, { root: await root(), hasDiskQuota }),
    boot: async () => ({ id: await readBootId(), at: Math.floor(clock.now() - uptime() * 1000) }),
  });
  const status = new StatusServer(() => agent.snapshot(), agentSocket(config), config.metrics);
  return {
    ...agent,
    async start() {
      await agent.start();
      await status.open();
    },
    async stop() {
      status.close();
      await agent.stop();
    },
  };
}

/** What `gpurent-agent doctor` looks at. */
export function checksOf(config: AgentConfig, clock: Clock = systemClock): Check[] {
  return [...hostChecks(config), ...dockerChecks(config, clock), ...gpuChecks(config, gpuDriver(config, clock), clock)];
}

function gpuDriver({ gpus, name }: AgentConfig, clock: Clock): GpuDriver {
  return gpus.kind === 'nvidia' ? new NvidiaGpus(clock, gpus.attach) : new SimulatedGpus(gpus.count, name);
}

/** Where Docker keeps its containers; asked once, for a heartbeat must not wait for it. */
function rootOf(engine: Engine): () => Promise<string> {
  let root: string | undefined;
  return async () => (root ??= (await engine.info()).DockerRootDir);
}
