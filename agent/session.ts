import { withTimeout } from '../shared/clock.js';
import { SetupError, messageOf } from '../shared/coded-error.js';
import {
  WorkloadState,
  type ControlMessage,
  type Gpu,
  type Heartbeat,
  type Hello,
  type Inventory,
  type Observation,
  type Welcome,
} from '../shared/gen/gpurent/agent/v1/agent.js';
import { NOTHING } from '../shared/observation.js';
import { PROTOCOL_MAX, PROTOCOL_MIN } from '../shared/protocol.js';
import { VERSION } from '../shared/version.js';
import type { Executor } from './commands/executor.js';
import type { Dependencies } from './commands/reconcile.js';
import type { FindingReports } from './doctor/finding-reports.js';
import { troubleOf } from './domain/failure.js';
import type { Desired, Journal } from './journal/journal.js';
import type { Subscriber } from './link/link.js';
import type { Outbox, Send } from './link/outbox.js';
import type { LogStreams } from './logs/log-streams.js';
import type { Measurements } from './measurements/measurements.js';
import type { WorkloadSummary } from './runtime/workload.js';
import type { Upgrades } from './upgrades/upgrades.js';
import type { Watcher } from './watch/watcher.js';

const LOOK_MS = 5_000;
/** How long hello waits for a slow Docker, for example after a boot, before it is sent as `unseen`. */
const HELLO_LOOK_MS = 20_000;

/** The part of Hello about this host and its workloads. */
type Sight = Pick<Hello, 'inventory' | 'instances' | 'unseen'>;

/** Returns `starting` for a stopped workload that should run: the agent will start it again or still report its end. */
function stateOf(listed: WorkloadSummary['state'] | undefined, desired: Desired): WorkloadState {
  if (listed === 'running') return WorkloadState.WORKLOAD_STATE_RUNNING;
  if (listed !== 'stopped') return WorkloadState.WORKLOAD_STATE_ABSENT;
  return desired === 'running' ? WorkloadState.WORKLOAD_STATE_STARTING : WorkloadState.WORKLOAD_STATE_STOPPED;
}

/** Returns why this host accepts no new work, or an empty string. */
export function obstacleOf({
  canary,
  journal,
  needs,
  gpuTest,
}: Pick<Dependencies, 'canary' | 'journal' | 'needs' | 'gpuTest'>): string {
  return [needs.obstacle, canary.obstacle, gpuTest.obstacle, journal.obstacle].filter(Boolean).join('; ');
}

export interface HostFacts {
  bootId: string;
  describe: () => Promise<Inventory>;
  /** Returns the space left for renters' disks, in GB of 10^9 bytes. */
  diskFreeGb: () => Promise<number>;
}

/** Tells whether the control plane understands a hello that is `unseen`. */
export function mayBeUnseen(journal: Journal): boolean {
  return journal.meta('takes_unseen') === 'yes';
}

/** Returns the latest term that this host has accepted. It refuses a lower epoch and another incarnation of the same epoch. */
export function epochOf(journal: Journal): { epoch: number; incarnation: string } {
  const [epoch, incarnation] = JSON.parse(journal.meta('epoch') ?? '[0, ""]') as [number, string];
  return { epoch, incarnation };
}

/** Returns the instances in the journal, without their actual state. Even if the control plane reads them as seen, it stops none. */
export function instancesInJournal(journal: Journal): Hello['instances'] {
  const known = journal.instances().filter(({ desired }) => desired !== 'absent');
  return known.map(({ instanceId, sequence, desired }) => {
    const observation = { ...NOTHING, state: stateOf('stopped', desired) };
    return { instanceId, sequence, gpuUuids: [], diskGb: 0, origin: '', observation };
  });
}

/** Records the term of the control plane. Throws SetupError for one with another protocol or a superseded term. */
export function acceptWelcome(journal: Journal, welcome: Welcome): void {
  if (welcome.protocol < PROTOCOL_MIN || welcome.protocol > PROTOCOL_MAX) {
    throw new SetupError(
      `the control plane speaks protocol ${welcome.protocol}, this agent ${PROTOCOL_MIN} to ${PROTOCOL_MAX}; upgrade the older one`,
    );
  }
  const seen = epochOf(journal);
  const another = welcome.epoch === seen.epoch && welcome.incarnation !== seen.incarnation;
  if (welcome.epoch < seen.epoch || another) {
    throw new SetupError(
      another
        ? `two control planes run on copies of one store, both at epoch ${seen.epoch}; this host obeys the one that it met first: stop the other, or restore its store with "gpurent-control-plane restore"`
        : `the control plane is at epoch ${welcome.epoch}, but this host has already accepted epoch ${seen.epoch}: it runs on an older copy of its store; restore that with "gpurent-control-plane restore"`,
    );
  }
  journal.setMeta('epoch', JSON.stringify([welcome.epoch, welcome.incarnation]));
  journal.setMeta('takes_unseen', welcome.takesUnseen ? 'yes' : 'no');
}

/** Sends the state of this host to the control plane and handles its messages. */
export class Session implements Subscriber {
  private gpus: Gpu[] = [];
  private inventory: Inventory | undefined;
  /** Whether the last Hello was `unseen`. */
  private isUnseen = false;
  /** The comparison with Docker that is in progress. */
  private looking: Promise<Sight> | undefined;
  private canSee = false;

  constructor(
    private readonly facts: HostFacts,
    private readonly hands: Dependencies,
    private readonly watcher: Watcher,
    private readonly journal: Journal,
    private readonly executor: Executor,
    private readonly outbox: Outbox,
    private readonly logs: LogStreams,
    private readonly measurements: Measurements,
    private readonly findings: FindingReports,
    private readonly upgrades: Upgrades,
  ) {}

  /**
   * Compares the journal with Docker first, because the control plane acts on Hello. If Docker does not answer in time, Hello lists
   * the instances in the journal as `unseen`, and the agent sends another one once Docker answers.
   */
  async hello(): Promise<Hello> {
    const sight = mayBeUnseen(this.journal) ? await this.sightOrJournal() : await this.look();
    this.isUnseen = sight.unseen;
    return {
      protocolMin: PROTOCOL_MIN,
      protocolMax: PROTOCOL_MAX,
      agentVersion: VERSION,
      bootId: this.facts.bootId,
      ...sight,
      heedsPaidTimes: true,
      answersMeasurementQueries: this.measurements.canAnswer,
      reportsFindings: this.findings.areMade,
      takesUpgrades: this.upgrades.areTaken,
      ...epochOf(this.journal),
    };
  }

  /** Compares with Docker. Calls during a comparison share it. */
  private look(): Promise<Sight> {
    this.canSee = false;
    this.looking ??= (async () => {
      try {
        await this.watcher.compare();
        const sight = { inventory: await this.describe(), instances: await this.describeInstances(), unseen: false };
        this.canSee = true;
        return sight;
      } finally {
        this.looking = undefined;
      }
    })();
    return this.looking;
  }

  private sightOrJournal(): Promise<Sight> {
    const fromJournal = () => ({
      inventory: this.inventory,
      instances: instancesInJournal(this.journal),
      unseen: true,
    });
    return withTimeout(this.hands.clock, HELLO_LOOK_MS, this.look(), fromJournal).catch(fromJournal);
  }

  /** Throws once Docker answers after an `unseen` Hello, so that the link dials again and sends a new Hello. */
  private requireSight(dockerAnswers: boolean): void {
    if (!this.isUnseen || !dockerAnswers) return;
    if (this.canSee) throw new Error('Docker answers again: the agent reconnects to report its workloads');
    this.look().catch((error: unknown) => {
      const message = `the workloads cannot be read from Docker: ${messageOf(error)}`;
      this.hands.paced.write('warn', message, {}, troubleOf(error, message));
    });
  }

  private async describe(): Promise<Inventory> {
    const inventory = await this.facts.describe();
    this.gpus = inventory.gpus;
    this.inventory = inventory;
    return inventory;
  }

  /**
   * Returns the heartbeat and sends unacknowledged reports again. It resolves well before the control plane counts the host as
   * disconnected, whatever hangs on the host. A slow Docker is reported as one that does not answer.
   */
  async heartbeat(): Promise<Omit<Heartbeat, 'atMs'>> {
    for (const report of this.journal.unacknowledgedReports()) this.outbox.report(report);
    const { outages } = this.hands;
    const isAway = !outages.dockerAvailable;
    const [gpus, running, diskFreeGb] = await Promise.all([
      this.latestGpus(),
      isAway ? undefined : this.running(),
      isAway ? 0 : this.soon(this.facts.diskFreeGb(), 0),
    ]);
    const dockerAvailable = running !== undefined;
    this.requireSight(dockerAvailable);
    const obstacle = obstacleOf(this.hands);
    this.findings.noteHealth(
      JSON.stringify([dockerAvailable, obstacle, gpus.map(({ uuid, healthy }) => [uuid, healthy])]),
    );
    const { dockerAheadMs } = outages;
    return { dockerAvailable, gpus, running: running ?? [], diskFreeGb, obstacle, dockerAheadMs };
  }

  /** Resolves to the result of `look`, or to `otherwise` if `look` fails or takes too long. */
  private soon<T>(look: Promise<T>, otherwise: T): Promise<T> {
    return withTimeout(this.hands.clock, LOOK_MS, look, () => otherwise).catch(() => otherwise);
  }

  /** Returns the GPUs, or the last known ones if they cannot be read in time, because the heartbeat must not be late. */
  private async latestGpus(): Promise<Gpu[]> {
    const { gpus, clock } = this.hands;
    this.gpus = await withTimeout(
      clock,
      LOOK_MS,
      gpus.inventory().then((inventory) => inventory.gpus),
      () => this.gpus,
    );
    return this.gpus;
  }

  /** Returns the running runs, without those that cannot be read in time. Undefined if Docker does not answer. */
  private async running(): Promise<Heartbeat['running'] | undefined> {
    const { runtime, observer } = this.hands;
    const listed = await this.soon<WorkloadSummary[] | undefined>(runtime.list(), undefined);
    if (!listed) return undefined;
    const up = listed.filter(({ state }) => state === 'running');
    const found = await Promise.all(up.map(({ instanceId }) => this.soon(runtime.find(instanceId), undefined)));
    return found.flatMap((workload) => {
      if (workload?.state !== 'running') return [];
      const { instanceId, startedAt } = workload;
      return [{ instanceId, runId: String(startedAt), runningMs: observer.ageOf(workload) }];
    });
  }

  connected(welcome: Welcome, send: Send): void {
    acceptWelcome(this.journal, welcome);
    for (const floor of welcome.floors) this.executor.raiseFloor(floor);
    this.watcher.dropUnstarted(new Set(welcome.floors.map(({ instanceId }) => instanceId)));
    this.outbox.connect(send);
    for (const result of this.journal.unacknowledgedResults()) this.outbox.result(result);
    this.measurements.connected(welcome.takesMeasurements);
    this.findings.connected(welcome.takesFindings, send);
    this.upgrades.connected(send);
  }

  disconnected(): void {
    this.outbox.disconnect();
    this.logs.stopAll();
    this.measurements.disconnected();
    this.findings.disconnected();
    this.upgrades.disconnected();
  }

  receive({ message }: ControlMessage): void {
    switch (message?.$case) {
      case 'command':
        return this.executor.receive(message.value);
      case 'resultAck':
        return this.journal.acknowledge(message.value.commandId);
      case 'reportAck':
        return this.journal.acknowledgeReport(message.value.instanceId, message.value.number);
      case 'paidTimes':
        return this.watcher.hearPaidTimes(message.value.instances);
      case 'logSubscribe':
        return this.logs.subscribe(message.value);
      case 'measurementQuery':
        return this.measurements.answer(message.value);
      case 'upgrade':
        return this.upgrades.take(message.value.version);
      case 'logUnsubscribe':
        return this.logs.unsubscribe(message.value.subscriptionId);
      default:
        this.hands.logger.warn({ kind: message?.$case }, 'unexpected message');
    }
  }

  private async describeInstances(): Promise<Hello['instances']> {
    const listed = new Map((await this.hands.runtime.list()).map((workload) => [workload.instanceId, workload]));
    // Includes workloads whose removal is not done: an older copy of the store may still want them.
    const told = this.journal
      .instances()
      .filter(({ instanceId, desired }) => desired !== 'absent' || listed.has(instanceId));
    return Promise.all(
      told.map(async ({ instanceId, sequence, desired }) => {
        const workload = listed.get(instanceId);
        const hasEnded = desired === 'ended' && !this.journal.hasReport(instanceId);
        const ended = workload && hasEnded ? await this.endOf(instanceId) : undefined;
        const state = stateOf(workload?.state, desired);
        const run = { runId: ended?.runId ?? '', exit: ended?.exit };
        const observation = { ...NOTHING, ...run, ...this.placeOf(workload), state };
        const { gpuUuids = [], diskGb = 0, origin = '' } = workload ?? {};
        return { instanceId, sequence, gpuUuids, diskGb, origin, observation };
      }),
    );
  }

  /** Returns the image, port and links of a running workload, for a database that does not know it or is an older copy. */
  private placeOf(workload: WorkloadSummary | undefined): Partial<Observation> {
    if (workload?.state !== 'running') return {};
    const { instanceId, image, sshPort } = workload;
    return { image, sshPort: sshPort ?? 0, ...this.hands.observer.latestLinks(instanceId) };
  }

  /** Returns the end of a run that was already reported, because an older copy of the database may not have it. */
  private async endOf(instanceId: string): Promise<Observation | undefined> {
    const { runtime, clock, observer } = this.hands;
    const found = withTimeout(clock, LOOK_MS, runtime.find(instanceId), () => undefined).catch(() => undefined);
    const workload = await found;
    return workload && observer.observe(workload);
  }
}
