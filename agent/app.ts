import { mkdirSync } from 'node:fs';
import { uptime } from 'node:os';
import { systemClock, withTimeout, type Clock } from '../shared/clock.js';
import type { Inventory } from '../shared/gen/gpurent/agent/v1/agent.js';
import type { Logger } from '../shared/logger.js';
import { Executor } from './commands/executor.js';
import { journalFile, type AgentConfig } from './config.js';
import type { GpuDriver } from './host/gpus/driver.js';
import { NvidiaGpus } from './host/gpus/nvidia.js';
import { SimulatedGpus } from './host/gpus/simulated.js';
import { requireGuestTools } from './host/guest-tools.js';
import { readBootId, readInventory } from './host/inventory.js';
import { PortAllocator } from './host/ports.js';
import { Journal } from './journal/journal.js';
import type { Identity } from './link/identity.js';
import { dialer } from './link/dial.js';
import { Link } from './link/link.js';
import { Outbox } from './link/outbox.js';
import { LogStreams } from './logs/log-streams.js';
import { DockerRuntime } from './runtime/docker/docker-runtime.js';
import { EngineWatch } from './runtime/docker/docker-watch.js';
import { DEADLINE_MS, Engine } from './runtime/docker/engine.js';
import { Session } from './session.js';
import { Watcher } from './watch/watcher.js';

const STOP_PATIENCE_MS = 5_000;

export interface Agent {
  /** Compares with Docker, then dials the control plane. Throws SetupError when this host cannot be used. */
  start(): Promise<void>;
  /** Ends the stream and leaves every workload as it is. */
  stop(): Promise<void>;
}

/** What this host tells of itself. Throws SetupError when Docker or the GPUs cannot be read. */
export async function inspectHost(config: AgentConfig, clock: Clock = systemClock): Promise<Inventory> {
  const engine = new Engine(config.dockerSocket, clock);
  await engine.require(config.dockerSocket);
  return readInventory(config, gpuDriver(config, clock), await dockerRoot(engine));
}

/** All wiring of the agent. */
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
  const heldPorts = async () => (await runtime.list()).flatMap(({ sshPort }) => sshPort ?? []);
  const ports = new PortAllocator(config.ports, config.bindAddress, heldPorts);
  const runtime: DockerRuntime = new DockerRuntime(engine, clock, { ...config, hostId: identity.hostId }, ports, gpus);
  const journal = new Journal(journalFile(config));
  const outbox = new Outbox();
  const executor = new Executor({ runtime, gpus, clock, logger }, journal, outbox);
  const logs = new LogStreams(runtime, outbox, clock, logger);
  let watcher: Watcher | undefined;
  let link: Link | undefined;

  const describe = async () => readInventory(config, gpus, await dockerRoot(engine));

  /** Docker's labels are the truth about what is here; a lost journal is made again from them. */
  async function rebuildJournal(): Promise<void> {
    for (const workload of await runtime.list()) {
      if (journal.instance(workload.instanceId)) continue;
      // What does not run may have ended unheard: the watcher reports it, and the control plane knows what to make of that.
      const desired = workload.state === 'created' ? 'absent' : 'running';
      journal.remember({ instanceId: workload.instanceId, sequence: workload.sequence, desired });
      logger.warn(
        { instanceId: workload.instanceId },
        'a workload that the journal does not know was found by its label',
      );
    }
  }

  return {
    async start() {
      await engine.require(config.dockerSocket);
      await runtime.prepare();
      await gpus.inventory();
      const bootId = await readBootId();
      noteBoot(journal, bootId, clock);
      await rebuildJournal();
      const bootedAt = Number(journal.meta('booted_at') ?? 0);
      watcher = new Watcher(
        runtime,
        new EngineWatch(engine, identity.hostId),
        executor,
        journal,
        outbox,
        clock,
        logger,
        bootedAt,
      );
      await watcher.compare();
      watcher.start();
      const facts = { bootId, describe };
      const session = new Session(facts, { runtime, gpus, clock, logger }, watcher, journal, executor, outbox, logs);
      link = new Link(dialer(identity), session, clock, Math.random, logger);
      link.start();
    },
    async stop() {
      link?.stop();
      watcher?.stop();
      logs.stopAll();
      // What Docker is doing is not waited for long: the command is in the journal, and will be sent again.
      await withTimeout(clock, STOP_PATIENCE_MS, executor.stop(), () => undefined);
      journal.close();
    },
  };
}

/** Remembers when the host booted under a journal that is older: what was started before that is to be brought back. */
function noteBoot(journal: Journal, bootId: string, clock: Clock): void {
  const last = journal.meta('boot_id');
  if (last === bootId) return;
  if (last !== undefined) journal.setMeta('booted_at', String(Math.floor(clock.now() - uptime() * 1000)));
  journal.setMeta('boot_id', bootId);
}

function gpuDriver({ gpus, name }: AgentConfig, clock: Clock): GpuDriver {
  return gpus.kind === 'nvidia' ? new NvidiaGpus(clock) : new SimulatedGpus(gpus.count, name);
}

async function dockerRoot(engine: Engine): Promise<string> {
  const info = (await engine.call('describe itself', DEADLINE_MS.inspect, (docker) => docker.info())) as {
    DockerRootDir: string;
  };
  return info.DockerRootDir;
}
