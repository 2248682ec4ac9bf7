import { messageOf } from '../../shared/coded-error.js';
import { Metadata } from '@grpc/grpc-js';
import { eventually } from '../../scripts/eventually.js';
import { dialWire, type WireClient, type WireCommand, type WireMessage, type WireStream } from './wire.js';
import { Echoes } from './echoes.js';
import { inventoryOf } from './fake-inventory.js';
import { enroll, type FakeAgentOptions } from './fake-enrollment.js';

export interface FakeExit {
  code: number;
  outOfMemory?: boolean;
  ranMs?: number;
  lastLines?: string[];
}

interface FakeWorkload {
  state: 'WORKLOAD_STATE_RUNNING' | 'WORKLOAD_STATE_STOPPED' | 'WORKLOAD_STATE_ABSENT';
  sequence: number;
  sshPort: number;
  gpuUuids: string[];
  diskGb?: number;
  origin?: string;
  lines: string[];
  /** A new one each time it comes up. */
  runId?: string;
  /** When it came up last, and for how long it ran, once it is down. */
  startedAt?: number;
  ranMs?: number;
  exit?: FakeExit;
  /** What the host says of the host key of its SSH server. */
  sshHostKey?: string;
}

/** What a later process needs to go on as the same host. */
export interface FakeHostState {
  hostId: string;
  credential: string;
  inventory: Record<string, unknown>;
  workloads: [instanceId: string, FakeWorkload][];
}

type Welcome = NonNullable<WireMessage['welcome']>;
type Outcome = 'ACCEPTED' | 'DONE' | 'REFUSED' | 'FAILED' | 'STALE';

const FIRST_PORT = 40_000;

/** A host that answers like an agent over the real wire and runs nothing. */
export class FakeAgent {
  /** Each word on how long instances are paid for. */
  readonly paidTimes: { instanceId: string; paidMs: number }[][] = [];
  /** Every command received, in order, also the ones sent again. */
  readonly received: WireCommand[] = [];
  readonly acknowledged: string[] = [];
  private readonly echoes = new Echoes();
  private readonly acknowledgedReports = new Set<string>();
  /** Commands that wait for the test's word. */
  readonly held: WireCommand[] = [];
  readonly workloads = new Map<string, FakeWorkload>();
  /** Every query of what an instance has used; answered with these points, unless they are null. */
  readonly queried: { queryId: string; instanceId: string }[] = [];
  points: Record<string, unknown>[] | null = [];
  /** Each version that it was asked to upgrade to. */
  readonly upgrades: string[] = [];
  readonly subscriptions = new Map<string, string>();
  automatic: boolean;
  heartbeatMs = 0;
  /** What was agreed upon. */
  protocol = 0;
  closed = false;
  /** Why the last stream ended. */
  closedBecause = '';

  /** The highest protocol that it speaks. */
  private newest = 2;
  private readonly results = new Map<string, Record<string, unknown>>();
  private readonly reportNumbers = new Map<string, number>();
  /** What is told of with each answer and report of an instance from now on. */
  private readonly endedRuns = new Map<string, { runId: string; ranMs: number; endedAt: number }>();
  private stream: WireStream | undefined;
  private ports = FIRST_PORT;
  private runs = 0;
  private claimed: Record<string, unknown> = {};

  private constructor(
    private readonly client: WireClient,
    readonly hostId: string,
    readonly credential: string,
    readonly inventory: Record<string, unknown>,
    automatic: boolean,
    private readonly now: () => number,
  ) {
    this.automatic = automatic;
  }

  /** Rejects with the control plane's reason. */
  static async enroll(address: string, token: string, options: FakeAgentOptions = {}): Promise<FakeAgent> {
    const inventory = inventoryOf(options);
    const { client, answer } = await enroll(address, token, inventory, options);
    const { automatic = true, now = Date.now } = options;
    const agent = new FakeAgent(client, answer.hostId, answer.credential, inventory, automatic, now);
    if (options.wire === 'protocol 1') agent.newest = 1;
    return agent;
  }

  /** A host that an earlier process has enrolled in plain text, and what runs there. */
  static resume(address: string, state: FakeHostState): FakeAgent {
    const { hostId, credential, inventory, workloads } = state;
    const agent = new FakeAgent(dialWire(address), hostId, credential, inventory, true, Date.now);
    for (const [instanceId, workload] of workloads) agent.workloads.set(instanceId, workload);
    agent.ports += workloads.length;
    return agent;
  }

  get state(): FakeHostState {
    const { hostId, credential, inventory, workloads } = this;
    return { hostId, credential, inventory, workloads: [...workloads] };
  }

  get connected(): boolean {
    return this.stream !== undefined;
  }

  /**
   * Resolves with the control plane's welcome; rejects with its refusal. Dials once more where the connection of before is gone
   * and nobody has noticed yet, as after a restart of the control plane.
   */
  async connect(credential = this.credential): Promise<Welcome> {
    return this.dial(credential).catch((error: unknown) => {
      if (!messageOf(error).includes('Connection dropped')) throw error;
      return this.dial(credential);
    });
  }

  private async dial(credential: string): Promise<Welcome> {
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${credential}`);
    const stream = this.client.connect(metadata);
    return new Promise((resolve, reject) => {
      let isLost = false;
      const lost = (reason: string) => {
        // Its end follows its error.
        if (isLost) return;
        isLost = true;
        this.closedBecause = reason;
        if (this.stream === stream) this.hangUp();
        reject(new Error(reason));
      };
      stream.on('error', (error) => lost(error.message));
      stream.on('end', () => lost('ended by the control plane'));
      stream.on('data', (message: WireMessage) => {
        if (!message.welcome) return this.receive(message);
        this.hangUp();
        this.stream = stream;
        this.heartbeatMs = message.welcome.heartbeatMs;
        this.protocol = message.welcome.protocol;
        this.beat();
        resolve(message.welcome);
      });
      stream.write({ hello: this.hello() });
    });
  }

  /** Dials again, saying something else than the truth of itself. */
  async claim(hello: Record<string, unknown>): Promise<NonNullable<WireMessage['welcome']>> {
    this.disconnect();
    this.claimed = hello;
    try {
      return await this.connect();
    } finally {
      this.claimed = {};
    }
  }

  /** Breaks the stream without a word. */
  disconnect(): void {
    this.stream?.cancel();
    this.hangUp();
    this.subscriptions.clear();
  }

  private hangUp(): void {
    this.stream = undefined;
    this.echoes.end();
  }

  close(): void {
    this.closed = true;
    this.disconnect();
    this.client.close();
  }

  beat(fields: Record<string, unknown> = {}): void {
    const running = [...this.workloads].filter(([, { state }]) => state === 'WORKLOAD_STATE_RUNNING');
    this.send({
      heartbeat: {
        dockerAvailable: true,
        gpus: this.inventory['gpus'],
        running: running.map(([instanceId, { runId = '' }]) => ({
          instanceId,
          runId,
          runningMs: this.ageOf(instanceId),
        })),
        diskFreeGb: 1_000_000,
        ...fields,
      },
    });
  }

  accept(command: WireCommand): void {
    this.answer(command, 'ACCEPTED');
  }

  /** Does what the command wants and says so. */
  done(command: WireCommand): void {
    this.apply(command);
    const accessRevision = command.access?.revision ?? 0;
    this.answer(command, 'DONE', { observation: this.outcome(command.instanceId), accessRevision });
  }

  /** Does what the command wants, but for the key of SSH. */
  doneButForKey(command: WireCommand): void {
    this.apply(command);
    this.answer(command, 'DONE', { accessRevision: command.access?.revision, sshKeyStays: true });
  }

  /** The workload came up and ended before it was reached. */
  doneAndEnded(command: WireCommand, exit: FakeExit): void {
    this.apply(command);
    this.change(command.instanceId, { state: 'WORKLOAD_STATE_STOPPED', exit });
    this.answer(command, 'DONE', { observation: this.observation(command.instanceId) });
  }

  refuse(command: WireCommand, code: string, message: string): void {
    this.answer(command, 'REFUSED', { code, message });
  }

  fail(command: WireCommand, code: string, message: string): void {
    this.answer(command, 'FAILED', { code, message });
  }

  stale(command: WireCommand, highestSequence: number): void {
    this.answer(command, 'STALE', { highestSequence });
  }

  /** Does what the command wants, and the answer is lost on its way. */
  lose(command: WireCommand): void {
    this.apply(command);
    this.results.set(
      command.commandId,
      this.result(command, 'DONE', { observation: this.outcome(command.instanceId) }),
    );
  }

  /** The command, should it come again, is taken for new. */
  forget({ commandId }: WireCommand): void {
    this.results.delete(commandId);
  }

  /** Sends the last answer to the command once more. */
  repeat(command: WireCommand): void {
    const runs = this.runsOf(command.instanceId);
    this.send({ commandResult: { ...this.results.get(command.commandId), runs } });
  }

  /** A workload ends by itself; its last run is noted, and its end is still to be reported. */
  end(instanceId: string, code = 0): void {
    const ranMs = this.ageOf(instanceId);
    const runId = this.workloads.get(instanceId)?.runId ?? '';
    this.change(instanceId, { state: 'WORKLOAD_STATE_STOPPED', ranMs, exit: { code, ranMs } });
    this.endedRuns.set(instanceId, { runId, ranMs, endedAt: this.now() });
  }

  /** A workload has ended by itself. */
  exit(instanceId: string, exit: FakeExit): void {
    this.change(instanceId, { state: 'WORKLOAD_STATE_STOPPED', exit: { ranMs: this.ageOf(instanceId), ...exit } });
    this.report(instanceId);
  }

  /** A workload has vanished. */
  vanish(instanceId: string): void {
    this.change(instanceId, { state: 'WORKLOAD_STATE_ABSENT' });
    this.report(instanceId);
  }

  /** Everything went down and came up again: another run. */
  reboot(instanceId: string): void {
    this.change(instanceId, { runId: String(++this.runs), startedAt: this.now() });
  }

  report(instanceId: string, number = (this.reportNumbers.get(instanceId) ?? 0) + 1): void {
    this.reportNumbers.set(instanceId, Math.max(number, this.reportNumbers.get(instanceId) ?? 0));
    const sequence = this.workloads.get(instanceId)?.sequence ?? 0;
    const runs = this.runsOf(instanceId);
    this.send({
      workloadReport: { instanceId, number, sequence, observation: this.observation(instanceId), note: '', runs },
    });
  }

  /** Says how a workload stands, and everything that runs; resolves when the control plane has heard it. */
  async speak(instanceId: string): Promise<void> {
    this.beat();
    this.report(instanceId);
    const number = this.reportNumbers.get(instanceId) ?? 0;
    await eventually('the report to be acknowledged', () => this.hasAcknowledged(instanceId, number));
  }

  /** Whether the control plane has heard this report. */
  hasAcknowledged(instanceId: string, number: number): boolean {
    return this.acknowledgedReports.has(`${instanceId} ${number}`);
  }

  /**
   * Says what runs. Resolves when the control plane has handled this and all that was said before, and also what this host answers
   * to all that it was sent before; at once without a connection.
   */
  async roundTrip(): Promise<void> {
    this.beat();
    // What was sent to this host comes before the first echo, and what it answers is handled before the second.
    for (let echo = 0; echo < 2 && this.stream; echo++) await this.echoes.ask((message) => this.send(message));
  }

  /** Says what an instance has used in these minutes; resolves when the control plane has heard it. */
  async measure(instanceId: string, ...minutes: Record<string, unknown>[]): Promise<void> {
    this.send({ measurementReport: { instances: [{ instanceId, minutes }] } });
    await this.speak(instanceId);
  }

  /** The workload prints. */
  print(instanceId: string, ...lines: string[]): void {
    const workload = this.workloads.get(instanceId);
    const before = workload?.lines.length ?? 0;
    workload?.lines.push(...lines);
    for (const [subscriptionId, subscribed] of this.subscriptions) {
      if (subscribed === instanceId) this.sendLines(subscriptionId, instanceId, before);
    }
  }

  private receive(message: WireMessage): void {
    const { command, resultAck, reportAck, logSubscribe, logUnsubscribe, paidTimes, measurementQuery } = message;
    if (message.upgrade) this.upgrades.push(message.upgrade.version);
    if (paidTimes) this.paidTimes.push(paidTimes.instances);
    if (resultAck && !this.echoes.hear(resultAck.commandId)) this.acknowledged.push(resultAck.commandId);
    if (reportAck) this.acknowledgedReports.add(`${reportAck.instanceId} ${reportAck.number}`);
    if (measurementQuery) {
      this.queried.push(measurementQuery);
      const { queryId } = measurementQuery;
      if (this.points) this.send({ measurementAnswer: { queryId, points: this.points } });
    }
    if (logUnsubscribe) this.subscriptions.delete(logUnsubscribe.subscriptionId);
    if (logSubscribe) {
      const { subscriptionId, instanceId, tail, since } = logSubscribe;
      this.subscriptions.set(subscriptionId, instanceId);
      this.sendLines(subscriptionId, instanceId, Number(since), tail);
    }
    if (command) this.receiveCommand(command);
  }

  private receiveCommand(command: WireCommand): void {
    this.received.push(command);
    if (this.results.has(command.commandId)) return this.repeat(command);
    const highest = this.workloads.get(command.instanceId)?.sequence ?? 0;
    if (command.sequence < highest) return this.stale(command, highest);
    if (this.held.some(({ commandId }) => commandId === command.commandId)) return;
    if (!this.automatic) {
      this.held.push(command);
      return;
    }
    this.obey(command);
  }

  private obey(command: WireCommand): void {
    const state = this.workloads.get(command.instanceId)?.state ?? 'WORKLOAD_STATE_ABSENT';
    if (command.running && !command.running.mayCreate && state === 'WORKLOAD_STATE_ABSENT') {
      return this.refuse(
        command,
        'WORKLOAD_GONE',
        'the host no longer holds the workload; destroy the instance and deploy again',
      );
    }
    this.accept(command);
    this.done(command);
  }

  private apply(command: WireCommand): void {
    const { instanceId, sequence, running } = command;
    const before = this.workloads.get(instanceId);
    if (before && command.desired === 'kept') before.sequence = sequence;
    if (command.desired === 'kept') return;
    const up = command.desired === 'running';
    const state = {
      running: 'WORKLOAD_STATE_RUNNING',
      stopped: 'WORKLOAD_STATE_STOPPED',
      absent: 'WORKLOAD_STATE_ABSENT',
    } as const;
    this.workloads.set(instanceId, {
      state: state[command.desired],
      sequence,
      sshPort: before?.sshPort ?? this.ports++,
      gpuUuids: running?.spec.gpuUuids ?? before?.gpuUuids ?? [],
      origin: before?.origin ?? running?.spec.origin ?? '',
      lines: before?.lines ?? [],
      runId: up ? String(++this.runs) : (before?.runId ?? ''),
      ...(up ? { startedAt: this.now() } : { ranMs: this.ageOf(instanceId) }),
    });
  }

  /** For how long a workload has run, or had run when it went down. */
  private ageOf(instanceId: string): number {
    const { startedAt, ranMs } = this.workloads.get(instanceId) ?? {};
    return ranMs ?? (startedAt === undefined ? 0 : this.now() - startedAt);
  }

  private runsOf(instanceId: string): Record<string, unknown>[] {
    const run = this.endedRuns.get(instanceId);
    return run ? [{ runId: run.runId, ranMs: run.ranMs, endedMsAgo: this.now() - run.endedAt }] : [];
  }

  private change(instanceId: string, changes: Partial<FakeWorkload>): void {
    const workload = this.workloads.get(instanceId);
    if (!workload) throw new Error(`the fake agent knows no instance ${instanceId}`);
    Object.assign(workload, changes);
  }

  private answer(command: WireCommand, outcome: Outcome, fields: Record<string, unknown> = {}): void {
    const result = this.result(command, outcome, fields);
    if (outcome !== 'ACCEPTED') {
      // A stale answer is not final: the same command may come again above what it was below.
      if (outcome !== 'STALE') this.results.set(command.commandId, result);
      const index = this.held.indexOf(command);
      if (index >= 0) this.held.splice(index, 1);
    }
    this.send({ commandResult: result });
  }

  private result({ commandId, instanceId, sequence }: WireCommand, outcome: Outcome, fields: Record<string, unknown>) {
    return { commandId, instanceId, sequence, outcome: `COMMAND_OUTCOME_${outcome}`, ...fields };
  }

  private observation(instanceId: string): Record<string, unknown> {
    const workload = this.workloads.get(instanceId);
    if (!workload) return { state: 'WORKLOAD_STATE_ABSENT' };
    const { state, sshPort, runId, exit, sshHostKey = '' } = workload;
    if (state === 'WORKLOAD_STATE_RUNNING')
      return { state, sshPort, sshHostKey, runId, runningMs: this.ageOf(instanceId) };
    return exit ? { state, runId, exit } : { state };
  }

  /** The same after a command: what it took down is told of, too. */
  private outcome(instanceId: string): Record<string, unknown> {
    const workload = this.workloads.get(instanceId);
    const observation = this.observation(instanceId);
    if (!workload?.runId || workload.ranMs === undefined || workload.exit) return observation;
    const { runId, ranMs, lines } = workload;
    if (workload.state === 'WORKLOAD_STATE_ABSENT') return { ...observation, runId, runningMs: ranMs };
    return { ...observation, runId, exit: { code: 143, ranMs, lastLines: lines } };
  }

  hello(): Record<string, unknown> {
    const instances = [...this.workloads].map(([instanceId, { sequence, gpuUuids, diskGb = 0, origin = '' }]) => ({
      instanceId,
      sequence,
      gpuUuids,
      diskGb,
      origin,
      observation: this.observation(instanceId),
    }));
    return {
      protocolMin: 1,
      protocolMax: this.newest,
      agentVersion: 'fake',
      bootId: 'fake',
      inventory: this.inventory,
      instances,
      epoch: 0,
      heedsPaidTimes: true,
      answersMeasurementQueries: true,
      reportsFindings: true,
      ...this.claimed,
    };
  }

  /** A line's stamp is its number, counted from 1. */
  private sendLines(subscriptionId: string, instanceId: string, since: number, tail?: number): void {
    const printed = this.workloads.get(instanceId)?.lines ?? [];
    const all = printed.map((text, index) => ({ at: String(index + 1).padStart(9, '0'), text }));
    const lines = all.slice(since).slice(-(tail ?? all.length));
    this.send({ logChunk: { subscriptionId, lines, caughtUp: tail !== undefined, ended: false } });
  }

  /** A message as it is, also for what no honest agent would send. */
  say(message: Record<string, unknown>): void {
    this.send(message);
  }

  private send(message: Record<string, unknown>): void {
    this.stream?.write(message);
  }
}
