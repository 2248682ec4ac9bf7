import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createControlPlane, type ControlPlane } from '../../../control-plane/app.js';
import type { Caller, SessionCaller } from '../../../control-plane/domain/caller.js';
import { Refusal } from '../../../control-plane/domain/refusal.js';
import { createOffer } from '../../../control-plane/services/catalogue/offers.js';
import { confirmClock } from '../../../control-plane/services/reconciler/clock.js';
import { deploy } from '../../../control-plane/services/actions/deploy.js';
import { destroy } from '../../../control-plane/services/actions/destroy.js';
import { start } from '../../../control-plane/services/actions/start.js';
import { stop } from '../../../control-plane/services/actions/stop.js';
import { grantCredit } from '../../../control-plane/services/billing/ledger/credits.js';
import { setDisputed } from '../../../control-plane/services/billing/payments/disputes.js';
import { appendEntry } from '../../../control-plane/services/billing/ledger/ledger.js';
import { settleOrganizations } from '../../../control-plane/services/billing/settle/settle.js';
import { query } from '../../../control-plane/store/sql.js';
import {
  Hello,
  type Command,
  type CommandOutcome,
  type CommandResult,
} from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { silentLogger } from '../../../shared/logger.js';
import { ManualClock } from '../../harness/manual-clock.js';
import { PLAIN_TEXT } from '../../harness/plain-text.js';
import { differencesIn, statusesIn, tallyOf } from './books.js';
import { addPeople, type Who } from './people.js';
import { Reference, SILENCE_MS } from './reference.js';
import { CommandRunner, type Hesitation } from './command-runner.js';
import { FakeWorkloads, NOTHING, stateOf } from './workloads.js';
import { handleHello } from '../../../control-plane/services/reconciler/hello.js';
import { recordResult } from '../../../control-plane/services/reconciler/command-results.js';
import { recordProgress, recordReport } from '../../../control-plane/services/reconciler/workload-reports.js';
import { recordHeartbeat } from '../../../control-plane/services/reconciler/heartbeat.js';

const MEMORY_FOLDER = '/dev/shm';
/** In a quiet time little is left to the workers after these beats, and they run at every so many. */
const FIRST_BEATS = 3;
const BEATS_A_RUN = 10;

/** A control plane, one organization and one host, all in simulated seconds, beside the reference that is told the same facts. */
export class Marketplace {
  readonly clock: ManualClock;
  readonly reference: Reference;
  private readonly folder = mkdtempSync(join(existsSync(MEMORY_FOLDER) ? MEMORY_FOLDER : tmpdir(), 'gpurent-billing-'));
  private readonly database = join(this.folder, 'gpurent.db');
  private readonly deferred: (() => void)[] = [];
  readonly workloads: FakeWorkloads;
  private readonly runner: CommandRunner;
  private readonly inbox: Command[] = [];
  /** What the host could not say. */
  private readonly unsaid: CommandResult[] = [];
  protected running: ControlPlane | undefined;
  private reports = 0;
  private offers = 0;
  private isReachable = true;
  protected readonly renter: SessionCaller;
  private readonly callers: Readonly<Record<Who, Caller>>;
  protected readonly keys: Readonly<Record<Who, string | null>>;
  protected readonly machineId: string;
  private readonly templateId: string;

  constructor(
    /** How often the host speaks, in seconds. */
    private readonly heartbeatS: number,
    /** Milliseconds since 1970 that the clock shows at the start. */
    at?: number,
  ) {
    this.clock = new ManualClock(at);
    this.reference = new Reference(this.clock.now());
    this.workloads = this.host();
    this.runner = new CommandRunner(this.workloads, (...answer) => this.answer(...answer));
    this.boot();
    if (!this.running) throw new Error('the control plane does not run');
    const people = addPeople(this.running.platform, this.workloads.inventory());
    ({
      renter: this.renter,
      callers: this.callers,
      keys: this.keys,
      machineId: this.machineId,
      templateId: this.templateId,
    } = people);
    this.connect();
  }

  /** What runs on the host. */
  protected host(): FakeWorkloads {
    return new FakeWorkloads(this.clock);
  }

  /** Instances that are not destroyed. */
  get alive(): string[] {
    return [...this.reference.instances].filter(([, { status }]) => status !== 'destroyed').map(([id]) => id);
  }

  get isUp(): boolean {
    return this.running !== undefined;
  }

  /** Time passes for everybody, in which nobody asks for anything. */
  advance(seconds: number): void {
    for (let [left, beats] = [seconds, 1]; left > 0; beats++) {
      const step = Math.min(left, this.isUp ? this.heartbeatS : left);
      left -= step;
      this.clock.advance(step * 1_000);
      this.reference.advance(step, this.isUp);
      // While disks may pause, the control plane looks for silent hosts.
      const isLooking = !this.isReachable && this.reference.silentMs < SILENCE_MS + 2_000 * this.heartbeatS;
      this.beat(isLooking || beats <= FIRST_BEATS || beats % BEATS_A_RUN === 0);
    }
  }

  deploy(gpuRate: number, storageRate: number, who: Who = 'member'): void {
    this.request(({ platform }) => {
      const prices = { price_per_hour_micro: gpuRate, storage_price_per_gb_hour_micro: storageRate };
      const offer = createOffer(platform, this.renter, { machine_id: this.machineId, num_gpus: 1, ...prices });
      const request = { offer_id: offer.id, template_id: this.templateId, disk_gb: 10 + (this.offers++ % 90) };
      const { instance } = deploy(platform, this.callers[who], {
        ...request,
        label: null,
        ssh_key_id: null,
        env_overrides: [],
      });
      const rates = { gpuRate: BigInt(gpuRate), diskRate: BigInt(storageRate * instance.disk_gb) };
      const nothing = {
        gpuMs: 0n,
        unshownMs: 0n,
        diskMs: 0n,
        absorbed: 0n,
        status: 'creating',
        isUp: false,
        hasDisk: true,
      };
      const limits = { stopAt: null, maxCharge: null, isHalted: false };
      const keys = { key: this.keys[who], runKey: this.keys[who] };
      this.reference.instances.set(instance.id, { ...rates, ...nothing, ...limits, ...keys });
    });
  }

  stop(id: string): void {
    this.request(({ platform }) => stop(platform, this.renter, id));
  }

  start(id: string, who: Who = 'member'): void {
    this.request(({ platform }) => {
      platform.connections.heard(this.machineId);
      const isStarting = () => statusesIn(platform).some((one) => one.id === id && one.status === 'starting');
      const wasStarting = isStarting();
      // Its answer comes when the history is over.
      start(platform, this.callers[who], id).catch(() => undefined);
      if (!wasStarting && isStarting()) this.reference.beginRun(id, this.keys[who]);
    });
  }

  destroy(id: string): void {
    this.request(({ platform }) => destroy(platform, this.renter, id));
  }

  credit(amount: number): void {
    this.request(({ platform }) => {
      grantCredit(platform, this.renter, this.renter.organizationId, { amount_micro: amount, reason: 'test' });
      this.reference.enter(amount);
    });
  }

  refund(amount: number): void {
    this.request(({ platform }) => {
      const { organizationId } = this.renter;
      const entry = { organizationId, kind: 'refund', amountMicro: -amount, reason: null, authorId: null } as const;
      platform.store.transact((tx) => appendEntry(platform, tx, entry));
      this.reference.enter(-amount);
    });
  }

  dispute(isOpen: boolean): void {
    this.request(({ platform }) => setDisputed(platform, this.renter, this.renter.organizationId, isOpen));
  }

  exit(id: string): void {
    const workload = this.workloads.get(id);
    if (!workload?.isUp) return;
    this.workloads.goDown(id, workload);
    this.settle();
    if (this.isReachable) this.report(id);
  }

  /** Everything on the host goes down for so long, and is brought back. */
  reboot(seconds: number): void {
    // Of a run that is cut short, what the host has not said before is never attested.
    for (const id of this.workloads.keys()) this.report(id);
    const up = [...this.workloads].filter(([, { isUp }]) => isUp);
    for (const [id, workload] of up) this.workloads.goDown(id, workload);
    this.settle();
    this.advance(seconds);
    for (const [, workload] of up) this.workloads.comeUp(workload);
    this.settle();
  }

  /** The host is out of reach for so long; `meanwhile` comes at the beginning. */
  silence(seconds: number, meanwhile = () => {}): void {
    this.disconnect();
    meanwhile();
    this.advance(seconds);
    this.connect();
  }

  /** A workload ends by itself while its host is out of reach; once it is back, it tells of that twice, the second time late. */
  exitUnheard(id: string, seconds: number): void {
    this.disconnect();
    this.exit(id);
    this.advance(seconds);
    this.connect();
    this.workloads.backdate(id);
    this.report(id);
  }

  /** The host does what it is told, and is out of reach before it can say so. */
  loseAnswers(seconds: number): void {
    this.isReachable = false;
    for (const command of this.inbox.splice(0)) this.runner.obey(command);
    this.settle();
    this.advance(seconds);
    this.connect();
  }

  /**
   * The workloads of what is begun come up at once, and are up for a while before their host says so, or fails them; or are never
   * up, for their image does not come. `meanwhile` comes right before that.
   */
  hesitate(how: Hesitation, begin: () => void, seconds: number, meanwhile = () => {}): void {
    this.runner.hesitation = how;
    begin();
    this.beat();
    this.pause(seconds);
    meanwhile();
    this.runner.hesitation = undefined;
    this.advance(2 * this.heartbeatS);
  }

  /** The host tells that what an instance was asked for is still under way. */
  tellOfProgress(instanceId: string): void {
    if (!this.running) return;
    const progress = { instanceId, kind: 'pulling', message: '', gpusFree: false, pulled: undefined };
    recordProgress(this.running.platform, this.machineId, progress);
    this.reference.tellOfProgress(instanceId);
  }

  /** Time passes, in which nobody says anything. */
  pause(seconds: number): void {
    this.clock.advance(seconds * 1_000);
    this.reference.advance(seconds);
  }

  statusOf(id: string): string {
    return this.reference.instances.get(id)?.status ?? '';
  }

  spentBy(id: string): number {
    const spend = query.selectFrom('instances').select('spend_micro').where('id', '=', id);
    return this.running?.platform.store.transact((tx) => tx.get(spend)?.spend_micro) ?? 0;
  }

  /** The control plane is killed; its host goes on. */
  crash(): void {
    this.disconnect();
    this.running?.platform.store.close();
    this.running = undefined;
    this.deferred.length = 0;
  }

  boot(): void {
    if (this.running) return;
    const config = {
      httpAddress: '',
      grpcAddress: '',
      tls: PLAIN_TEXT,
      database: this.database,
      secretKey: Buffer.alloc(32, 7),
      logLevel: 'silent',
      logFormat: null,
      rateLimits: {
        perAddress: 1,
        perCredential: 1,
        attemptsPerAddress: 1,
        attemptsPerAccount: 1,
      },
    };
    const defer = (run: () => void) => void this.deferred.push(run);
    this.running = createControlPlane(config, silentLogger, { clock: this.clock, defer });
  }

  connect(): void {
    this.isReachable = true;
    if (!this.running) return;
    const { platform } = this.running;
    platform.connections.attach(this.machineId, {
      congested: false,
      send: ({ message }) => {
        if (message?.$case === 'command') this.inbox.push(message.value);
        return true;
      },
      close: () => {},
    });
    const instances = [...this.workloads].map(([instanceId, workload]) => ({
      instanceId,
      sequence: workload.sequence,
      observation: { ...NOTHING, state: stateOf(workload) },
      gpuUuids: [],
      diskGb: 0,
    }));
    const inventory = this.workloads.inventory();
    handleHello(platform, this.machineId, Hello.fromPartial({ protocolMin: 1, protocolMax: 1, inventory, instances }));
    for (const result of this.unsaid.splice(0)) {
      recordResult(platform, this.machineId, { ...result, runs: this.workloads.endedRuns(result.instanceId) });
    }
    for (const [id, { isUp }] of this.workloads) if (!isUp) this.report(id);
    this.beat();
  }

  /** The wall clock of the control plane is set, and its operator says later that it is right. */
  setClock(minutes: number): void {
    this.clock.step(minutes * 60_000);
  }

  confirmClock(): void {
    this.request(({ platform }) => confirmClock(platform, this.renter));
  }

  /** Everything is attested and booked; answers what differs from the reference. */
  differences(): string[] {
    this.boot();
    this.connect();
    for (const id of this.workloads.keys()) this.report(id);
    this.settleNow();
    return differencesIn(this.database, this.reference);
  }

  settleNow(): void {
    this.request(({ platform }) => {
      platform.store.transact((tx) => settleOrganizations(platform, tx, [this.renter.organizationId]));
    });
  }

  tally(): Record<string, number> {
    return tallyOf(this.database);
  }

  close(): void {
    this.running?.platform.store.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  protected request(work: (controlPlane: ControlPlane) => unknown): void {
    if (!this.running) return;
    try {
      work(this.running);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
    }
    this.settle();
  }

  /** What was set off ends, and the reference hears how things stand. */
  private settle(): void {
    for (let run = this.deferred.shift(); run; run = this.deferred.shift()) run();
    if (!this.running) {
      for (const [id, { isUp }] of this.workloads) this.tell(id, { isUp });
      return;
    }
    for (const { id, status } of statusesIn(this.running.platform))
      this.tell(id, { status, isUp: this.workloads.get(id)?.isUp ?? false });
  }

  private tell(id: string, facts: { status?: string; isUp: boolean }): void {
    const instance = this.reference.instances.get(id);
    if (!instance) return;
    Object.assign(instance, facts);
    if (instance.status === 'stopped') instance.isHalted = false;
  }

  /** The host does what it was told, and says what runs; the workers of the control plane run, unless they are left out. */
  protected beat(runsWorkers = true): void {
    if (!this.running) return this.settle();
    const { platform, workers } = this.running;
    if (this.isReachable) {
      platform.connections.heard(this.machineId);
      this.reference.hear();
      this.runner.endAttempts();
      for (const command of this.inbox.splice(0)) this.runner.obey(command);
      const up = [...this.workloads].filter(([, { isUp }]) => isUp);
      const running = up.map(([instanceId, workload]) => ({
        instanceId,
        runId: workload.runId,
        runningMs: this.workloads.ageOf(workload),
      }));
      recordHeartbeat(platform, this.machineId, {
        dockerAvailable: true,
        gpus: this.workloads.gpus,
        running,
        diskFreeGb: 1e3,
        obstacle: '',
        atMs: 0,
      });
    }
    if (runsWorkers) workers.runAll();
    this.settle();
  }

  private answer(
    { commandId, instanceId, sequence }: Command,
    outcome: CommandOutcome,
    observation: CommandResult['observation'],
  ): void {
    const words = {
      code: 'CONTAINER_FAILED',
      message: 'test',
      highestSequence: 0,
      accessRevision: 0,
      sshKeyStays: false,
    };
    const result = {
      commandId,
      instanceId,
      sequence,
      outcome,
      ...words,
      observation,
      runs: this.workloads.endedRuns(instanceId),
    };
    if (this.running && this.isReachable) recordResult(this.running.platform, this.machineId, result);
    else this.unsaid.push(result);
  }

  private report(instanceId: string): void {
    const workload = this.workloads.get(instanceId);
    if (!workload || !this.running) return;
    const observation = this.workloads.observe(workload);
    const number = ++this.reports;
    recordReport(this.running.platform, this.machineId, {
      instanceId,
      number,
      sequence: workload.sequence,
      observation,
      note: '',
      runs: this.workloads.endedRuns(instanceId),
    });
    this.settle();
  }

  protected disconnect(): void {
    this.isReachable = false;
    this.inbox.length = 0;
  }
}
