import { withTimeout, type Clock } from '../shared/clock.js';
import type { Inventory } from '../shared/gen/gpurent/agent/v1/agent.js';
import type { Logger } from '../shared/logger.js';
import { PacedLog } from '../shared/paced-log.js';
import { VERSION } from '../shared/version.js';
import type { Canary } from './canary/canary.js';
import { FindingReports } from './doctor/finding-reports.js';
import type { Check } from './doctor/finding.js';
import { Executor } from './commands/executor.js';
import { GpuAccess } from './commands/gpu-access.js';
import { GpuTest, type GpuStarter, type VerdictStorage } from './gpu-test/gpu-test.js';
import type { GpuTestResult } from './domain/gpu-verdict.js';
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
import { Measurements, type Instruments } from './measurements/measurements.js';
import type { DockerWatch, Runtime, WorkloadSummary } from './runtime/workload.js';
import { Session, obstacleOf } from './session.js';
import { UnseenStart } from './unseen-start.js';
import type { HaltedRuns } from './outages/halted-runs.js';
import { OutageTracker } from './outages/outage-tracker.js';
import type { HostNeeds } from './host/needs.js';
import { Upkeep } from './host/upkeep.js';
import { Upgrades, type UpgradeParts } from './upgrades/upgrades.js';
import { PaidTimes } from './watch/paid-times.js';
import { Watcher } from './watch/watcher.js';

const STOP_PATIENCE_MS = 5_000;
const NO_PID_FILE =
  'the start time of Docker cannot be read, so workloads that go down with Docker while the agent is down count as ended: set GPURENT_AGENT_DOCKER_PID_FILE to the pid file of Docker';

export interface Agent {
  /**
   * Compares the journal with Docker, then dials the control plane. If Docker does not answer and the control plane understands
   * `unseen`, it dials first and compares later; otherwise it throws SetupError.
   */
  start(): Promise<void>;
  /** Closes the stream and leaves every workload as it is. */
  stop(): Promise<void>;
  /** Returns the current state of the host. */
  snapshot(): Promise<Snapshot>;
  /** Runs the upkeep tasks at once, then tells the control plane how the host is. */
  runUpkeep(): Promise<void>;
  /** Starts a test container with a GPU, if one is free. */
  testGpus(): Promise<GpuTestResult>;
  /** Returns what the latest such test has shown. */
  latestGpuTest(): GpuTestResult;
}

/** The parts that an agent needs: the host, Docker and the connection to the control plane. */
export interface Parts {
  runtime: Runtime;
  /** Stops and removes workloads, each in its own process. */
  isolated: Remover;
  docker: DockerWatch;
  canary: Pick<Canary, 'answers' | 'obstacle'>;
  needs: Pick<HostNeeds, 'obstacle' | 'faults'>;
  /** Starts test containers with a GPU; null: this host has no GPUs that could fail. */
  gpuStarter: GpuStarter | null;
  gpus: GpuDriver;
  dial: Dial;
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
  logger: Logger;
  journal: Journal;
  /** Outlives a lost journal. */
  haltedRuns: HaltedRuns;
  /** The guards and addresses of workloads' web ports. */
  web: Pick<EndpointParts, 'portGuard' | 'addressOf' | 'answers' | 'hostKeyAt'> & {
    /** Returns why SSH host keys could not be read the last time; empty if they could. */
    hostKeyFault: () => string;
  };
  /** Returns when the certificates of this host end. */
  certificates: () => Snapshot['certificates'];
  /** How the host measures what workloads use; null: it does not. */
  instruments: Instruments | null;
  /** The doctor's checks, whose findings are reported; none: none are. */
  checks: readonly Check[];
  /** How the host upgrades its agent. */
  upgrades: UpgradeParts;
  /** The upkeep tasks, by the name that log lines show. */
  upkeep: Record<string, () => Promise<void>>;
  /** Prepares the host. Rejects only if Docker does not answer or does not show the instances of this host; can then be repeated. */
  prepare(): Promise<void>;
  /** Called if a start that waited for Docker fails for another reason. */
  fail(error: unknown): void;
  describe: () => Promise<Inventory>;
  /** Returns the space left for renters' disks, in GB of 10^9 bytes. */
  diskFreeGb: () => Promise<number>;
  boot(): Promise<{ id: string; at: number }>;
}

/** Assembles an agent from its parts, which can be real or fakes. */
export function assembleAgent(parts: Parts): Agent {
  const { runtime, gpus, journal, clock, logger, dial, random } = parts;
  const outbox = new Outbox((instanceId, message) => journal.runsFor(instanceId, message, clock));
  const tellNow = () => link?.beatNow();
  const outages = new OutageTracker(parts.docker, runtime, journal, clock, parts.haltedRuns, tellNow);
  const observer = new Observer(runtime, clock, journal, () => parts.docker.clockAheadMs);
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
  const gpuTest = new GpuTest(parts.gpuStarter, (work) => gpuAccess.borrow(work), verdictsIn(journal), clock, logger);
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
    needs: parts.needs,
    gpuTest,
    journal,
    clock,
    logger,
    paced,
  };
  const executor = new Executor(hands, journal, outbox);
  const logs = new LogStreams(runtime, outbox, clock, logger);
  const measurements = new Measurements(() => meantToRun(journal), parts.instruments, gpus, outbox, clock, paced);
  const findings = new FindingReports(parts.checks, clock);
  const upgrades = new Upgrades(parts.upgrades, VERSION, clock, random, logger);
  const upkeep = new Upkeep(withGpuTest(parts, gpuTest), clock, paced);
  const counts = countCommands(executor);
  const prepare = () => parts.prepare();
  const bootId = async () => (await parts.boot()).id;
  const unseen = new UnseenStart({ journal, gpus, clock, dial, random, logger, paced, bootId, prepare, findings });
  let watcher: Watcher | undefined;
  let link: Link | undefined;

  const begin = async () => {
    const boot = await parts.boot();
    const isNewBoot = outages.isNewBoot(boot.id);
    journal.countCrashes(isNewBoot);
    if (isNewBoot) await outages.noteBoot(boot);
    if ((await parts.docker.startedAt()) === null) logger.warn(NO_PID_FILE);
    await rebuildJournal(runtime, journal, logger);
    await outages.recallHalted();
    const paidTimes = new PaidTimes(journal, clock);
    const senses = { runtime, remover, docker: parts.docker, outages, observer, guardedPorts, gpuAccess, paidTimes };
    watcher = new Watcher(senses, executor, journal, outbox, clock, logger, paced);
    guardedPorts.onLink = (instanceId) => watcher?.reportLink(instanceId);
    await watcher.compare();
    guardedPorts.noteAll();
    watcher.start();
    const facts = { bootId: boot.id, describe: parts.describe, diskFreeGb: parts.diskFreeGb };
    const session = new Session(
      facts,
      hands,
      watcher,
      journal,
      executor,
      outbox,
      logs,
      measurements,
      findings,
      upgrades,
    );
    upgrades.start();
    link = new Link(dial, session, clock, random, logger, paced);
    link.start();
    upkeep.start();
    gpuTest.start();
    measurements.start();
  };

  return {
    async start() {
      if (await unseen.isReady()) return begin();
      link = unseen.link;
      const begun = unseen.untilReady().then(begin);
      begun.catch((error: unknown) => parts.fail(error));
    },
    async stop() {
      unseen.stop();
      link?.stop();
      upkeep.stop();
      gpuTest.stop();
      measurements.stop();
      upgrades.stop();
      watcher?.stop();
      guardedPorts.stop();
      logs.stopAll();
      // Do not wait long for Docker: the command is in the journal, and the control plane sends it again.
      await withTimeout(clock, STOP_PATIENCE_MS, executor.stop(), () => undefined);
      journal.close();
    },
    runUpkeep: () => upkeep.runNow().then(() => link?.beatNow()),
    testGpus: () => gpuTest.test().finally(() => link?.beatNow()),
    latestGpuTest: () => gpuTest.result,
    async snapshot() {
      const dockerAvailable = watcher !== undefined && outages.dockerAvailable;
      const facts = { version: VERSION, dockerAvailable, obstacle: obstacleOf(hands), commands: [...counts.values()] };
      return {
        ...facts,
        upgradeFaults: upgrades.faults,
        ...standingOf(link),
        ...(await readHost(parts, dockerAvailable)),
      };
    },
  };
}

/** Adds workloads that the journal does not know to it, from Docker's labels. This restores a lost journal. */
async function rebuildJournal(runtime: Runtime, journal: Journal, logger: Logger): Promise<void> {
  for (const workload of await runtime.list()) {
    if (journal.instance(workload.instanceId)) continue;
    const desired = WITHOUT_JOURNAL[workload.state];
    journal.remember({ instanceId: workload.instanceId, sequence: workload.sequence, desired });
    logger.warn(
      { instanceId: workload.instanceId },
      'a workload that is not in the journal was found by its Docker label and added',
    );
  }
}

/** Returns what the host shows now; of Docker nothing while it does not answer. */
async function readHost(
  { runtime, gpus, journal, web, certificates, needs, diskFreeGb }: Parts,
  dockerAvailable: boolean,
) {
  const listed = dockerAvailable ? await runtime.list() : [];
  return {
    ...(await gpus.inventory()),
    unanswered: runtime.unansweredCalls(),
    hostKeyFault: web.hostKeyFault(),
    certificates: certificates(),
    needs: needs.faults,
    diskFreeGb: dockerAvailable ? await diskFreeGb() : 0,
    workloads: listed.map((workload) => statusOf(workload, journal)),
  };
}

function statusOf(workload: WorkloadSummary, journal: Journal): Snapshot['workloads'][number] {
  const { instanceId, kind, state, gpuUuids, diskGb, sshPort, ports } = workload;
  const desired = journal.instance(instanceId)?.desired ?? 'unknown';
  return { instanceId, kind, state, desired, gpuUuids, diskGb, sshPort, ports };
}

/** Returns the instances whose workloads should run. */
function meantToRun(journal: Journal): string[] {
  return journal.instances().flatMap(({ instanceId, desired }) => (desired === 'running' ? [instanceId] : []));
}

/** Returns the state of the connection to the control plane. */
function standingOf(link: Link | undefined): Pick<Snapshot, 'connected' | 'disconnected' | 'refusal'> {
  const dated = ({ at, reason }: DatedFailure) => ({ at: new Date(at).toISOString(), reason });
  const { failure, refusal } = link ?? {};
  return {
    connected: link?.connected ?? false,
    disconnected: failure ? dated(failure) : null,
    refusal: refusal ? { ...dated(refusal), remedy: remedyOf(refusal) } : null,
  };
}

function verdictsIn(journal: Journal): VerdictStorage {
  return { read: () => journal.meta('gpu_verdict'), write: (text) => journal.setMeta('gpu_verdict', text) };
}

/** Returns the upkeep tasks, also that of the test of GPUs where there is one. */
function withGpuTest({ upkeep, gpuStarter }: Parts, gpuTest: GpuTest): Parts['upkeep'] {
  return gpuStarter ? { ...upkeep, 'the GPU test': () => gpuTest.lookForChange() } : upkeep;
}

/** Counts finished commands by kind and outcome. */
function countCommands(executor: Executor): ReadonlyMap<string, CommandCount> {
  const counts = new Map<string, CommandCount>();
  executor.onFinished = (kind, outcome) => {
    const { count } = counts.get(`${kind} ${outcome}`) ?? { count: 0 };
    counts.set(`${kind} ${outcome}`, { kind, outcome, count: count + 1 });
  };
  return counts;
}

/** The desired state of a workload that is not in the journal, by its actual state. */
const WITHOUT_JOURNAL = { created: 'absent', running: 'running', stopped: 'unsure' } as const;
