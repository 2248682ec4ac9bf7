import { sleep, type Clock } from '../../shared/clock.js';
import { messageOf } from '../../shared/coded-error.js';
import type { Running, WorkloadSpec } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { Logger } from '../../shared/logger.js';
import type { PacedLog } from '../../shared/paced-log.js';
import { MINUTE_MS } from '../../shared/time.js';
import { Failure, troubleOf } from '../domain/failure.js';
import type { UnansweredCall } from '../domain/unanswered-call.js';
import type { GpuDriver } from '../host/gpus/driver.js';
import type { Canary } from '../canary/canary.js';
import type { GpuTest } from '../gpu-test/gpu-test.js';
import type { Attempt } from './attempt.js';
import type { GpuAccess } from './gpu-access.js';
import type { Journal } from '../journal/journal.js';
import type { Observer } from '../observation/observer.js';
import type { GuardedPorts } from '../guarded-ports/guarded-ports.js';
import type { Remover, RunRecorder } from '../observation/run-recorder.js';
import type { Runtime, Workload } from '../runtime/workload.js';
import type { OutageTracker } from '../outages/outage-tracker.js';

/** The runtime without the methods that stop and remove workloads. */
export type Bringer = Omit<Runtime, 'stop' | 'remove'>;

export interface Dependencies {
  runtime: Bringer;
  remover: RunRecorder;
  /** The same, but each operation runs in its own process, which can crash without harm. */
  isolated: RunRecorder;
  gpus: GpuDriver;
  gpuAccess: GpuAccess;
  outages: OutageTracker;
  observer: Observer;
  guardedPorts: GuardedPorts;
  canary: Pick<Canary, 'answers' | 'obstacle'>;
  journal: Pick<Journal, 'obstacle'>;
  needs: { readonly obstacle: string };
  gpuTest: Pick<GpuTest, 'obstacle' | 'noteFailedStart'>;
  clock: Clock;
  logger: Logger;
  /** The log for operations that are retried. */
  paced: PacedLog;
}

/** How long after its start a workload counts as running even if SSH does not answer: a renter's image must not delay billing. */
const REACHED_MS = { container: 10_000, vm: 5 * MINUTE_MS } as const;
/** How long before that the canary is started if SSH does not answer. */
const CANARY_LEAD_MS = 7_000;
/** Waits between two looks at a silent SSH server: short at first, because it usually answers soon after the start. */
const FIRST_POLL_MS = 5;
const POLL_GROWTH = 1.1;
const LONGEST_POLL_MS = 200;
/** How often a stop or destroy that is still being tried is reported. */
const ATTEMPT_TOLD_MS = MINUTE_MS;
const MINUTES_UNTIL_ERROR = 5;
const DOCKER_PATIENCE_MS = MINUTE_MS;
const LONGEST_RETRY_MS = 30_000;

interface Trying {
  kind: 'stop_attempt' | 'destroy_attempt';
  words: string;
}

/** The progress of commands that are tried until they are done, by the desired state. */
const TRYING: Partial<Record<string, Trying>> = {
  stopped: { kind: 'stop_attempt', words: 'the host has tried to stop the workload' },
  absent: { kind: 'destroy_attempt', words: 'the host has tried to remove the workload' },
};

/** Brings the instance to the state that the command wants and returns the workload. Throws Failure. */
export async function reconcile(dependencies: Dependencies, attempt: Attempt): Promise<Workload> {
  const trying = TRYING[attempt.command.desired?.$case ?? 'kept'];
  return trying
    ? tellingOfTrying(dependencies, attempt, trying, () => bringToDesired(dependencies, attempt))
    : bringToDesired(dependencies, attempt);
}

async function bringToDesired(dependencies: Dependencies, attempt: Attempt): Promise<Workload> {
  const { instanceId, desired } = attempt.command;
  const [unanswered] = callsOf(dependencies, instanceId);
  if (unanswered) attempt.tellOfWaiting(`it waits for Docker of the host, which does not ${unanswered.what}`);
  await dependencies.runtime.whenIdle(instanceId);
  await replaceAccess(dependencies, attempt);
  switch (desired?.$case) {
    case 'running':
      if (attempt.isDangerous)
        throw new Failure('AGENT_CRASHED', 'the agent of this host has ended twice while it was starting the workload');
      return toRunning(dependencies, attempt, desired.value);
    case 'stopped':
      return untilDone(dependencies, attempt, (remover) =>
        toStopped(remover, dependencies.gpuAccess, instanceId, desired.value.releaseGpus),
      );
    case 'absent':
      return untilDone(dependencies, attempt, absence(dependencies.gpuAccess, instanceId));
    case 'kept': {
      const found = await dependencies.runtime.find(instanceId);
      await dependencies.guardedPorts.readmit(found);
      return found;
    }
    default:
      throw new Failure('CONTAINER_FAILED', 'this agent does not know what the command wants; upgrade it');
  }
}

/** Replaces the access of the workload first, so that the old keys and tokens stop working whatever else the command wants. */
async function replaceAccess({ runtime, guardedPorts, logger }: Dependencies, attempt: Attempt): Promise<void> {
  const { instanceId, access, desired } = attempt.command;
  if (!access) return;
  try {
    const { sshKeyStays } = await runtime.replaceAccess(instanceId, access);
    await guardedPorts.note(instanceId, await runtime.find(instanceId));
    attempt.access = { accessRevision: access.revision, sshKeyStays };
  } catch (error) {
    // A stop continues, because it closes the ports anyway. The next start brings the new access.
    if (desired?.$case !== 'stopped') throw error;
    logger.warn({ instanceId }, `access cannot be replaced before the stop: ${messageOf(error)}`);
  }
}

/**
 * Undoes a failed attempt. Removes the workload if this attempt created it or if it has never started. Stops any other workload,
 * because it can hold a renter's disk.
 */
export async function rollBack(dependencies: Dependencies, attempt: Attempt): Promise<void> {
  const { instanceId, desired } = attempt.command;
  if (desired?.$case !== 'running') return;
  await untilDone(dependencies, attempt, async (remover) => {
    const found = await remover.find(instanceId);
    if (attempt.created || found.state === 'created') return remover.remove(instanceId);
    if (found.state === 'running') attempt.recordPreviousRun(found.startedAt);
    return remover.stop(instanceId);
  });
}

async function toRunning(
  dependencies: Dependencies,
  attempt: Attempt,
  { mayCreate, spec }: Running,
): Promise<Workload> {
  const { runtime, remover, observer } = dependencies;
  const { command, signal, onProgress } = attempt;
  const { instanceId, sequence } = command;
  if (!spec) throw new Failure('CONTAINER_FAILED', 'the command contains no spec of the workload');

  if (attempt.stopMayBePending() && !attempt.hasStartedRun) await remover.stop(instanceId);
  const found = await runtime.find(instanceId);
  if (found.state === 'running') {
    attempt.accept();
  } else if (found.state === 'stopped') {
    // If the workload has run under this command and ended, the command has been carried out.
    const hasRun = mayCreate || attempt.alreadyRan(found.startedAt);
    if (hasRun && (await dependencies.outages.judge(found, signal)) === 'ended') return found;
    requireJournal(dependencies);
    await runtime.checkPorts(found);
    await dependencies.gpuAccess.acquire(instanceId, spec.gpuUuids, async () => {
      signal.throwIfAborted();
      attempt.accept();
      attempt.recordPreviousRun(found.startedAt);
      observer.startsNow(instanceId);
      await testingIfRefused(dependencies, spec, () => runtime.start(instanceId));
    });
  } else {
    if (!mayCreate) {
      throw new Failure(
        'WORKLOAD_GONE',
        'the host no longer holds the workload; destroy the instance and deploy again',
      );
    }
    if (found.state === 'created') await remover.remove(instanceId);
    requireJournal(dependencies);
    await dependencies.gpuAccess.check(instanceId, spec.gpuUuids);
    attempt.accept();
    await runtime.fetchImage(spec, onProgress, signal);
    await dependencies.gpuAccess.acquire(instanceId, spec.gpuUuids, async () => {
      signal.throwIfAborted();
      attempt.created = true;
      observer.startsNow(instanceId);
      await testingIfRefused(dependencies, spec, () => runtime.create(instanceId, sequence, spec));
    });
  }
  return untilReached(dependencies, attempt, spec.sshAuthorizedKey !== '');
}

/** Starts a container. If Docker does not, and the container has GPUs, the host finds out whether that is its own fault. */
async function testingIfRefused(
  { gpuTest }: Dependencies,
  { gpuUuids, virtualMachine }: WorkloadSpec,
  start: () => Promise<void>,
): Promise<void> {
  try {
    await start();
  } catch (error) {
    const isRefused = error instanceof Failure && ['CONTAINER_FAILED', 'DOCKER_TIMEOUT'].includes(error.code);
    if (isRefused && gpuUuids.length > 0 && !virtualMachine) gpuTest.noteFailedStart();
    throw error;
  }
}

/** Throws Failure JOURNAL_UNWRITABLE: after a restart, the agent would treat a workload without a record as a leftover. */
function requireJournal({ journal, logger }: Dependencies): void {
  if (journal.obstacle === '') return;
  logger.error(journal.obstacle);
  throw new Failure(
    'JOURNAL_UNWRITABLE',
    'the host cannot write its journal, because its own disk is full or broken, and accepts no new work; nothing is charged: take another machine, or try again later',
  );
}

/** Stops the workload and, if wanted, waits until no process uses its GPUs. Only then are they offered again. */
async function toStopped(
  remover: Remover,
  gpuAccess: GpuAccess,
  instanceId: string,
  releasesGpus: boolean,
): Promise<void> {
  await remover.stop(instanceId);
  const found = await remover.find(instanceId);
  if (!releasesGpus || found.state === 'absent') return;
  await gpuAccess.release(instanceId, found.gpuUuids);
  gpuAccess.noteReleased(instanceId);
}

/** Returns a function that removes the workload and releases its GPUs. It remembers the GPUs for further tries. */
function absence(gpuAccess: GpuAccess, instanceId: string): (remover: Remover) => Promise<void> {
  let gpuUuids: string[] = [];
  return async (remover) => {
    const found = await remover.find(instanceId);
    if (found.state !== 'absent') ({ gpuUuids } = found);
    await remover.remove(instanceId);
    await gpuAccess.release(instanceId, gpuUuids);
  };
}

/**
 * Waits until SSH of the workload answers, {@link REACHED_MS} have passed, or the workload has ended. Throws Failure
 * HOST_UNREACHABLE if SSH is silent because of this host; then nothing is charged.
 */
async function untilReached(
  { runtime, remover, outages, observer, canary, clock }: Dependencies,
  { command: { instanceId }, signal }: Attempt,
  hasSsh: boolean,
): Promise<Workload> {
  let verdict: Promise<boolean> | undefined;
  for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(pollMs * POLL_GROWTH, LONGEST_POLL_MS)) {
    const workload = await runtime.find(instanceId);
    if (workload.state === 'stopped') {
      if ((await outages.judge(workload, signal)) === 'ended') return workload;
      observer.startsNow(instanceId);
      await runtime.start(instanceId);
      continue;
    }
    if (workload.state !== 'running')
      throw new Failure('CONTAINER_FAILED', 'the container disappeared from Docker while it was starting');
    if (!hasSsh || workload.sshPort === null) return workload;
    if (await runtime.sshAnswers(workload.sshPort)) {
      observer.noteReached(workload);
      return workload;
    }
    const left = REACHED_MS[workload.kind] - observer.ageOf(workload);
    if (left <= CANARY_LEAD_MS) verdict ??= canary.answers();
    if (left <= 0) {
      if (await verdict) return workload;
      remover.exempt(workload);
      throw new Failure('HOST_UNREACHABLE', `${canary.obstacle}; nothing is charged: take another machine`);
    }
    await sleep(clock, pollMs, signal);
  }
}

/** Tries a stop or removal until Docker has done it or a newer command replaces it. It never fails. */
async function untilDone(
  { runtime, remover: own, isolated, clock, logger, paced }: Dependencies,
  attempt: Attempt,
  act: (remover: Remover) => Promise<void>,
): Promise<Workload> {
  const { command, signal, crashes, isDangerous } = attempt;
  const { commandId, instanceId } = command;
  const remover = isDangerous ? isolated : own;
  if (isDangerous) {
    logger.error(
      { commandId, instanceId, crashes },
      'the agent has crashed while handling this instance, so it now stops and removes it in a separate process',
    );
  }
  for (let delayMs = 1_000; ; delayMs = Math.min(delayMs * 2, LONGEST_RETRY_MS)) {
    try {
      // An unanswered call can still take effect, so wait until its outcome is known.
      await runtime.whenIdle(instanceId);
      await act(remover);
      return await remover.find(instanceId);
    } catch (error) {
      tellOfDocker(attempt, error);
      const message = `the command failed and will be tried again: ${messageOf(error)}`;
      paced.write('warn', message, { commandId, instanceId }, troubleOf(error, `${instanceId} ${message}`));
      await sleep(clock, delayMs, signal);
    }
  }
}

/** Reports every minute that a stop or destroy is still being tried, so that the host does not look idle. */
async function tellingOfTrying<T>(
  dependencies: Dependencies,
  attempt: Attempt,
  trying: Trying,
  work: () => Promise<T>,
): Promise<T> {
  const { clock, outages, paced } = dependencies;
  const { commandId, instanceId } = attempt.command;
  const done = new AbortController();
  const telling = (async () => {
    for (let minutes = 1; ; minutes++) {
      await sleep(clock, ATTEMPT_TOLD_MS, done.signal);
      const gpusFree = trying.kind === 'destroy_attempt' && (await hasLeftGpus(dependencies, instanceId));
      done.signal.throwIfAborted();
      const message = `${trying.words} for ${minutes} minutes${obstacleOf(dependencies, instanceId, gpusFree)}`;
      const level = minutes < MINUTES_UNTIL_ERROR ? 'warn' : 'error';
      const trouble = outages.dockerAvailable ? `${instanceId} ${trying.kind}` : `Docker ${trying.kind}`;
      paced.write(level, message, { commandId, instanceId }, trouble);
      attempt.tellOfTrying(trying.kind, message, gpusFree);
    }
  })().catch(() => undefined);
  try {
    return await work();
  } finally {
    done.abort();
    await telling;
  }
}

/** Reports to the renter at once that the command waits for Docker. */
function tellOfDocker(attempt: Attempt, error: unknown): void {
  if (troubleOf(error, '') !== '') attempt.tellOfWaiting(`it waits for Docker of the host: ${messageOf(error)}`);
}

/** Returns the reason for a delay and the remedy, as the end of a sentence. */
function obstacleOf({ runtime, outages }: Dependencies, instanceId: string, gpusFree: boolean): string {
  const [call] = callsOf({ runtime }, instanceId);
  if (call)
    return `; Docker of the host does not ${call.what} and has not answered for ${Math.floor(call.ms / MINUTE_MS)} minutes: the host owner must restart it ("systemctl restart docker")`;
  if (!outages.dockerAvailable)
    return '; Docker of the host does not answer: the host owner must check it ("systemctl status docker")';
  return gpusFree ? '; nothing of it is on its GPUs any more' : '';
}

function callsOf({ runtime }: Pick<Dependencies, 'runtime'>, instanceId: string): UnansweredCall[] {
  return runtime.unansweredCalls().filter((each) => each.instanceId === instanceId);
}

/** Tells whether the workload has no process and cannot get one: Docker answers, and no call is unanswered. */
async function hasLeftGpus({ runtime, gpuAccess }: Dependencies, instanceId: string): Promise<boolean> {
  try {
    const found = await runtime.find(instanceId);
    if (found.state === 'running') return false;
    await gpuAccess.release(instanceId, found.state === 'absent' ? [] : found.gpuUuids);
    return !runtime.hasUnanswered(instanceId);
  } catch {
    return false;
  }
}

/** Retries `work` for up to a minute while Docker does not answer, for example during its restart. */
export async function retryWhileDockerIsDown<T>(
  { clock, runtime }: Dependencies,
  attempt: Attempt,
  work: () => Promise<T>,
): Promise<T> {
  const { command, signal } = attempt;
  const deadline = clock.monotonic() + DOCKER_PATIENCE_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const passing = error instanceof Failure && error.code === 'DOCKER_UNREACHABLE';
      if (!passing || clock.monotonic() > deadline) throw error;
      tellOfDocker(attempt, error);
      await sleep(clock, 1_000, signal);
      await runtime.whenIdle(command.instanceId);
    }
  }
}
