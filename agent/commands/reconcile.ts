import { sleep, type Clock } from '../../shared/clock.js';
import { messageOf } from '../../shared/coded-error.js';
import type { Running } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { Logger } from '../../shared/logger.js';
import type { PacedLog } from '../../shared/paced-log.js';
import { MINUTE_MS } from '../../shared/time.js';
import { Failure, troubleOf } from '../domain/failure.js';
import type { UnansweredCall } from '../domain/unanswered-call.js';
import type { GpuDriver } from '../host/gpus/driver.js';
import type { Canary } from '../canary/canary.js';
import type { Attempt } from './attempt.js';
import type { GpuAccess } from './gpu-access.js';
import type { Journal } from '../journal/journal.js';
import type { Observer } from '../observation/observer.js';
import type { GuardedPorts } from '../guarded-ports/guarded-ports.js';
import type { Remover, RunRecorder } from '../observation/run-recorder.js';
import type { Runtime, Workload } from '../runtime/workload.js';
import type { OutageTracker } from '../outages/outage-tracker.js';

/** All of it but what brings workloads down. */
export type Bringer = Omit<Runtime, 'stop' | 'remove'>;

export interface Dependencies {
  runtime: Bringer;
  remover: RunRecorder;
  /** The same in a process of its own, which may crash. */
  isolated: RunRecorder;
  gpus: GpuDriver;
  gpuAccess: GpuAccess;
  outages: OutageTracker;
  observer: Observer;
  guardedPorts: GuardedPorts;
  canary: Pick<Canary, 'answers' | 'obstacle'>;
  journal: Pick<Journal, 'obstacle'>;
  clock: Clock;
  logger: Logger;
  /** For what is tried again and again. */
  paced: PacedLog;
}

/** So long after its start a workload runs, whether or not SSH answers: what a renter's image controls holds no billing back. */
const REACHED_MS = { container: 10_000, vm: 5 * MINUTE_MS } as const;
/** So long before that, a silent SSH has the canary asked. */
const CANARY_LEAD_MS = 7_000;
const POLL_MS = 200;
/** How often a stop or destroy that takes its time is told of. */
const ATTEMPT_TOLD_MS = MINUTE_MS;
const MINUTES_UNTIL_ERROR = 5;
const DOCKER_PATIENCE_MS = MINUTE_MS;
const LONGEST_RETRY_MS = 30_000;

interface Trying {
  kind: 'stop_attempt' | 'destroy_attempt';
  words: string;
}

/** How it is told that a command, which has no end but being done, is still tried. */
const TRYING: Partial<Record<string, Trying>> = {
  stopped: { kind: 'stop_attempt', words: 'the host has tried to stop the workload' },
  absent: { kind: 'destroy_attempt', words: 'the host has tried to remove the workload' },
};

/** Brings the instance to what the command wants and answers how it stands then. Throws Failure. */
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
        throw new Failure(
          'AGENT_CRASHED',
          'the agent of this host has ended twice while it was bringing the workload up',
        );
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

/** Whatever else the command wants: from here on nobody gets in by what was replaced. */
async function replaceAccess({ runtime, guardedPorts, logger }: Dependencies, attempt: Attempt): Promise<void> {
  const { instanceId, access, desired } = attempt.command;
  if (!access) return;
  try {
    const { sshKeyStays } = await runtime.replaceAccess(instanceId, access);
    await guardedPorts.note(instanceId, await runtime.find(instanceId));
    attempt.access = { accessRevision: access.revision, sshKeyStays };
  } catch (error) {
    // What is to end ends all the same, and takes its ports with it; the next start brings the access along.
    if (desired?.$case !== 'stopped') throw error;
    logger.warn({ instanceId }, `access is not replaced yet: ${messageOf(error)}`);
  }
}

/**
 * What a failed attempt has begun is undone: a workload that it has made, or that has never started, is removed; any other
 * may hold a renter's disk and is stopped.
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
  const { runtime, remover } = dependencies;
  const { command, signal, onProgress } = attempt;
  const { instanceId, sequence } = command;
  if (!spec) throw new Failure('CONTAINER_FAILED', 'the command does not say what to run');

  if (attempt.stopMayBePending() && !attempt.hasStartedRun) await remover.stop(instanceId);
  const found = await runtime.find(instanceId);
  if (found.state === 'running') {
    attempt.accept();
  } else if (found.state === 'stopped') {
    // What is sent again after its workload has run and ended has taken effect.
    const hasRun = mayCreate || attempt.alreadyRan(found.startedAt);
    if (hasRun && (await dependencies.outages.judge(found, signal)) === 'ended') return found;
    requireJournal(dependencies);
    await runtime.checkPorts(found);
    await dependencies.gpuAccess.acquire(instanceId, spec.gpuUuids, async () => {
      signal.throwIfAborted();
      attempt.accept();
      attempt.recordPreviousRun(found.startedAt);
      await runtime.start(instanceId);
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
      await runtime.create(instanceId, sequence, spec);
    });
  }
  return untilReached(dependencies, attempt, spec.sshAuthorizedKey !== '');
}

/** What is brought up without a record of it, an agent that restarts would take for something that should not be there. */
function requireJournal({ journal, logger }: Dependencies): void {
  if (journal.obstacle === '') return;
  logger.error(journal.obstacle);
  throw new Failure(
    'JOURNAL_UNWRITABLE',
    'the host cannot keep its records at the moment, for its own disk is full or broken, and takes nothing new; nothing is charged: take another machine, or try again later',
  );
}

/** GPUs go back to the market only when nothing computes on them any more. */
async function toStopped(
  remover: Remover,
  gpuAccess: GpuAccess,
  instanceId: string,
  releasesGpus: boolean,
): Promise<void> {
  await remover.stop(instanceId);
  const found = await remover.find(instanceId);
  if (releasesGpus && found.state !== 'absent') await gpuAccess.release(instanceId, found.gpuUuids);
}

/** Removes the workload; also when that is tried again, what it had is known. */
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
 * Up, and reached or old enough to be taken for running; or ended before. Throws Failure HOST_UNREACHABLE where SSH is silent
 * because of this host: then nothing is charged.
 */
async function untilReached(
  { runtime, remover, outages, observer, canary, clock }: Dependencies,
  { command: { instanceId }, signal }: Attempt,
  hasSsh: boolean,
): Promise<Workload> {
  let verdict: Promise<boolean> | undefined;
  for (;;) {
    const workload = await runtime.find(instanceId);
    if (workload.state === 'stopped') {
      if ((await outages.judge(workload, signal)) === 'ended') return workload;
      await runtime.start(instanceId);
      continue;
    }
    if (workload.state !== 'running')
      throw new Failure('CONTAINER_FAILED', 'the container has vanished while it came up');
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
    await sleep(clock, POLL_MS, signal);
  }
}

/** Stopping and removing never fail: they are tried until Docker has done them, or a newer command takes over. */
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
      'the agent crashed over this instance: it is handled in a process of its own',
    );
  }
  for (let delayMs = 1_000; ; delayMs = Math.min(delayMs * 2, LONGEST_RETRY_MS)) {
    try {
      // A call that has passed its deadline may still land: nothing is done before its outcome is known.
      await runtime.whenIdle(instanceId);
      await act(remover);
      return await remover.find(instanceId);
    } catch (error) {
      tellOfDocker(attempt, error);
      const message = `will try again: ${messageOf(error)}`;
      paced.write('warn', message, { commandId, instanceId }, troubleOf(error, `${instanceId} ${message}`));
      await sleep(clock, delayMs, signal);
    }
  }
}

/** Says every minute that a stop or destroy is still tried: a host that says nothing is taken for one that does nothing. */
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

/** Tells the renter what the command waits for, at once. */
function tellOfDocker(attempt: Attempt, error: unknown): void {
  if (troubleOf(error, '') !== '') attempt.tellOfWaiting(`it waits for Docker of the host: ${messageOf(error)}`);
}

/** What is in the way, and what to do about it. */
function obstacleOf({ runtime, outages }: Dependencies, instanceId: string, gpusFree: boolean): string {
  const [call] = callsOf({ runtime }, instanceId);
  if (call)
    return `; Docker of the host does not ${call.what} and has not said so for ${Math.floor(call.ms / MINUTE_MS)} minutes: its owner has to restart it ("systemctl restart docker")`;
  if (!outages.dockerAvailable)
    return '; Docker of the host does not answer: its owner has to look ("systemctl status docker")';
  return gpusFree ? '; nothing of it is on its GPUs any more' : '';
}

function callsOf({ runtime }: Pick<Dependencies, 'runtime'>, instanceId: string): UnansweredCall[] {
  return runtime.unansweredCalls().filter((each) => each.instanceId === instanceId);
}

/** Whether no process of the workload is left, and none can come up: Docker answers for it, and owes no answer. */
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

/** Runs `work` again while Docker is away for a short time, as it is when it restarts. */
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
