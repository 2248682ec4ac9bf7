import { withTimeout, type Clock } from '../shared/clock.js';
import type { Inventory } from '../shared/gen/gpurent/agent/v1/agent.js';
import type { Logger } from '../shared/logger.js';
import { PacedLog } from '../shared/paced-log.js';
import { VERSION } from '../shared/version.js';
import type { Canary } from './canary/canary.js';
import { Executor } from './commands/executor.js';
import { GpuAccess } from './commands/gpu-access.js';
import { remedyOf } from './domain/link-remedy.js';
import { Observer } from './observation/observer.js';
import { GuardedPorts, type EndpointParts } from './guarded-ports/guarded-ports.js';
import type { GpuDriver } from './host/gpus/driver.js';
import type { Journal } from './journal/journal.js';
import { RunRecorder, type Remover } from './observation/run-recorder.js';
import type { Dial } from './link/dial.js';
import type { CommandCount, Snapshot } from './status/snapshot.js';
import { Link, type DatedFailure } from './link/link.js';
import { Outbox } from './link/outbox.js';
import { LogStreams } from './logs/log-streams.js';
import type { DockerWatch, Runtime } from './runtime/workload.js';
import { Session, obstacleOf } from './session.js';
import { UnseenStart } from './unseen-start.js';
import { OutageTracker } from './outages/outage-tracker.js';
import { Upkeep } from './host/upkeep.js';
import { PaidTimes } from './watch/paid-times.js';
import { Watcher } from './watch/watcher.js';

const STOP_PATIENCE_MS = 5_000;
const NO_PID_FILE =
  'when Docker was started cannot be read, so a restart of it while the agent is down is taken for the end of its workloads: set GPURENT_AGENT_DOCKER_PID_FILE to its pid file';

export interface Agent {
  /**
   * Compares with Docker, then dials the control plane. Where Docker does not answer it dials first, if the control plane of this host
   * understands that, and compares later. Throws SetupError when this host cannot be used.
   */
  start(): Promise<void>;
  /** Ends the stream and leaves every workload as it is. */
  stop(): Promise<void>;
  /** How the host stands now. */
  snapshot(): Promise<Snapshot>;
}

/** What the agent stands on: the host, Docker, the way to the control plane. */
export interface Parts {
  runtime: Runtime;
  /** What of it brings workloads down, in a process of its own. */
  isolated: Remover;
  docker: DockerWatch;
  canary: Pick<Canary, 'answers' | 'obstacle'>;
  gpus: GpuDriver;
  dial: Dial;
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
  logger: Logger;
  journal: Journal;
  /** How workloads' web pages are guarded and found. */
  web: Pick<EndpointParts, 'portGuard' | 'addressOf' | 'answers'>;
  /** What the host needs done again and again. */
  upkeep: Record<string, () => Promise<void>>;
  /** Rejects with SetupError when Docker or the GPUs cannot be used; may be called again where Docker does not answer. */
  prepare(): Promise<void>;
  /** A start that has waited for Docker has failed for another reason. */
  fail(error: unknown): void;
  describe: () => Promise<Inventory>;
  /** What renters' disks may still take, in GB of 10^9 bytes. */
  diskFreeGb: () => Promise<number>;
  boot(): Promise<{ id: string; at: number }>;
}

/** The agent, whatever its host is made of. */
export function assembleAgent(parts: Parts): Agent {
  const { runtime, gpus, journal, clock, logger, dial, random } = parts;
  const outbox = new Outbox((instanceId, message) => journal.runsFor(instanceId, message, clock.now()));
  const outages = new OutageTracker(parts.docker, runtime, journal, clock, () => link?.beatNow());
  const observer = new Observer(runtime, clock);
  const recorded = (remover: Remover) => new RunRecorder(remover, journal, observer, clock);
  const remover = recorded(runtime);
  const guardedPorts = new GuardedPorts({
    ...parts.web,
    sshAnswers: (port) => runtime.sshAnswers(port),
    observer,
    clock,
    logger,
  });
  const gpuAccess = new GpuAccess(gpus, runtime, clock);
  const paced = new PacedLog(clock, logger);
  const hands = {
    runtime,
    remover,
    isolated: recorded(parts.isolated),
    gpus,
    gpuAccess,
    outages,
    observer,
    guardedPorts,
    canary: parts.canary,
    journal,
    clock,
    logger,
    paced,
  };
  const executor = new Executor(hands, journal, outbox);
  const logs = new LogStreams(runtime, outbox, clock, logger);
  const upkeep = new Upkeep(parts.upkeep, clock, paced);
  const counts = countCommands(executor);
  const prepare = () => parts.prepare();
  const bootId = async () => (await parts.boot()).id;
  const unseen = new UnseenStart({ journal, gpus, clock, dial, random, logger, paced, bootId, prepare });
  let watcher: Watcher | undefined;
  let link: Link | undefined;

  const begin = async () => {
    const boot = await parts.boot();
    const isNewBoot = outages.isNewBoot(boot.id);
    journal.countCrashes(isNewBoot);
    if (isNewBoot) await outages.noteBoot(boot);
    if ((await parts.docker.startedAt()) === null) logger.warn(NO_PID_FILE);
    await rebuildJournal(runtime, journal, logger);
    const paidTimes = new PaidTimes(journal, clock);
    const senses = { runtime, remover, docker: parts.docker, outages, observer, guardedPorts, gpuAccess, paidTimes };
    watcher = new Watcher(senses, executor, journal, outbox, clock, logger, paced);
    guardedPorts.onLink = (instanceId) => watcher?.reportLink(instanceId);
    await watcher.compare();
    guardedPorts.noteAll();
    watcher.start();
    const { describe, diskFreeGb } = parts;
    const facts = { bootId: boot.id, describe, diskFreeGb };
    const session = new Session(facts, hands, watcher, journal, executor, outbox, logs);
    link = new Link(dial, session, clock, random, logger, paced);
    link.start();
    upkeep.start();
  };

  return {
    async start() {
      if (await unseen.isReady()) return begin();
      link = unseen.link;
      void unseen
        .untilReady()
        .then(begin)
        .catch((error: unknown) => parts.fail(error));
    },
    async stop() {
      unseen.stop();
      link?.stop();
      upkeep.stop();
      watcher?.stop();
      guardedPorts.stop();
      logs.stopAll();
      // What Docker is doing is not waited for long: the command is in the journal, and will be sent again.
      await withTimeout(clock, STOP_PATIENCE_MS, executor.stop(), () => undefined);
      journal.close();
    },
    async snapshot() {
      const dockerAvailable = watcher !== undefined && outages.dockerAvailable;
      const listed = dockerAvailable ? await runtime.list() : [];
      return {
        ...(await gpus.inventory()),
        version: VERSION,
        ...standingOf(link),
        dockerAvailable,
        obstacle: obstacleOf(hands),
        unanswered: runtime.unansweredCalls(),
        diskFreeGb: dockerAvailable ? await parts.diskFreeGb() : 0,
        workloads: listed.map(({ instanceId, kind, state, gpuUuids, diskGb, sshPort, ports }) => {
          const desired = journal.instance(instanceId)?.desired ?? 'unknown';
          return { instanceId, kind, state, desired, gpuUuids, diskGb, sshPort, ports };
        }),
        commands: [...counts.values()],
      };
    },
  };
}

/** Docker's labels are the truth about what is here; a lost journal is made again from them. */
async function rebuildJournal(runtime: Runtime, journal: Journal, logger: Logger): Promise<void> {
  for (const workload of await runtime.list()) {
    if (journal.instance(workload.instanceId)) continue;
    const desired = WITHOUT_JOURNAL[workload.state];
    journal.remember({ instanceId: workload.instanceId, sequence: workload.sequence, desired });
    logger.warn(
      { instanceId: workload.instanceId },
      'a workload that the journal does not know was found by its label',
    );
  }
}

/** How the host stands with the control plane. */
function standingOf(link: Link | undefined): Pick<Snapshot, 'connected' | 'disconnected' | 'refusal'> {
  const dated = ({ at, reason }: DatedFailure) => ({ at: new Date(at).toISOString(), reason });
  const { failure, refusal } = link ?? {};
  return {
    connected: link?.connected ?? false,
    disconnected: failure ? dated(failure) : null,
    refusal: refusal ? { ...dated(refusal), remedy: remedyOf(refusal) } : null,
  };
}

/** How many commands of each kind have ended how. */
function countCommands(executor: Executor): ReadonlyMap<string, CommandCount> {
  const counts = new Map<string, CommandCount>();
  executor.onFinished = (kind, outcome) => {
    const { count } = counts.get(`${kind} ${outcome}`) ?? { count: 0 };
    counts.set(`${kind} ${outcome}`, { kind, outcome, count: count + 1 });
  };
  return counts;
}

/** What a workload is taken to be meant for that no journal knows of. */
const WITHOUT_JOURNAL = { created: 'absent', running: 'running', stopped: 'unsure' } as const;
