import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { createControlPlane, type ControlPlane } from '../../../control-plane/app.js';
import type { SessionCaller } from '../../../control-plane/domain/caller.js';
import { Refusal } from '../../../control-plane/domain/refusal.js';
import { createOffer } from '../../../control-plane/services/catalogue/offers.js';
import { createTemplate, systemBy } from '../../../control-plane/services/catalogue/template-editing.js';
import { confirmClock } from '../../../control-plane/services/clock.js';
import { createEnrollmentToken, enrollHost } from '../../../control-plane/services/hosts/enrollment.js';
import {
  greetHost,
  recordHeartbeat,
  recordReport,
  recordResult,
} from '../../../control-plane/services/hosts/host-messages.js';
import { deploy } from '../../../control-plane/services/instances/deploy.js';
import { destroy } from '../../../control-plane/services/instances/destroy.js';
import { start } from '../../../control-plane/services/instances/start.js';
import { stop } from '../../../control-plane/services/instances/stop.js';
import { grantCredit } from '../../../control-plane/services/money/credits.js';
import { setDisputed } from '../../../control-plane/services/money/disputes.js';
import { enter } from '../../../control-plane/services/money/ledger.js';
import { settleOrganizations } from '../../../control-plane/services/money/settle.js';
import { query } from '../../../control-plane/store/sql.js';
import {
  CommandOutcome,
  WorkloadState,
  type Command,
  type CommandResult,
  type Gpu,
} from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { silentLogger } from '../../../shared/logger.js';
import { ManualClock } from '../../harness/manual-clock.js';
import { PLAIN_TEXT } from '../../harness/plain-text.js';
import { Reference } from './reference.js';

interface FakeWorkload {
  runId: string;
  startedAt: number;
  isUp: boolean;
  ranMs: number;
  sequence: number;
}

const NOTHING = { runId: '', runningMs: 0, sshPort: 0, jupyterUrl: '', openUrl: '', image: '', exit: undefined };
const GPUS = 4;
const MEMORY_FOLDER = '/dev/shm';

/** A control plane, one organisation and one host, all in simulated seconds, beside the reference that is told the same facts. */
export class Marketplace {
  readonly clock = new ManualClock();
  readonly reference = new Reference();
  private readonly folder = mkdtempSync(join(existsSync(MEMORY_FOLDER) ? MEMORY_FOLDER : tmpdir(), 'gpurent-billing-'));
  private readonly deferred: (() => void)[] = [];
  private readonly workloads = new Map<string, FakeWorkload>();
  private readonly inbox: Command[] = [];
  /** What the host could not say. */
  private readonly unsaid: CommandResult[] = [];
  private readonly gpus: Gpu[] = Array.from({ length: GPUS }, (_, index) => ({
    uuid: `GPU-${index}`,
    index,
    model: 'Fake GPU',
    memoryMb: 24_576,
    healthy: true,
    reason: '',
  }));
  private running: ControlPlane | undefined;
  private runs = 0;
  private reports = 0;
  private offers = 0;
  private isReachable = true;
  private renter!: SessionCaller;
  private machineId = '';
  private templateId = '';

  constructor(
    /** How often the host speaks, in seconds. */
    private readonly heartbeatS: number,
  ) {
    this.boot();
    this.people();
    this.connect();
  }

  /** Instances that are not destroyed. */
  get alive(): string[] {
    return [...this.reference.instances].filter(([, { status }]) => status !== 'destroyed').map(([id]) => id);
  }

  get isUp(): boolean {
    return this.running !== undefined;
  }

  /** Time passes for everybody. */
  advance(seconds: number): void {
    for (let left = seconds; left > 0;) {
      const step = Math.min(left, this.isUp ? this.heartbeatS : left);
      left -= step;
      this.clock.advance(step * 1_000);
      this.reference.advance(step);
      this.beat();
    }
  }

  deploy(gpuRate: number, storageRate: number): void {
    this.request(({ platform }) => {
      const prices = { price_per_hour_micro: gpuRate, storage_price_per_gb_hour_micro: storageRate };
      const offer = createOffer(platform, this.renter, { machine_id: this.machineId, num_gpus: 1, ...prices });
      const request = { offer_id: offer.id, template_id: this.templateId, disk_gb: 10 + (this.offers++ % 90) };
      const { instance } = deploy(platform, this.renter, {
        ...request,
        label: null,
        ssh_key_id: null,
        env_overrides: [],
      });
      const rates = { gpuRate: BigInt(gpuRate), diskRate: BigInt(storageRate * instance.disk_gb) };
      const nothing = { gpuMs: 0n, diskMs: 0n, status: 'creating', isUp: false, hasDisk: true };
      this.reference.instances.set(instance.id, { ...rates, ...nothing });
    });
  }

  stop(id: string): void {
    this.request(({ platform }) => stop(platform, this.renter, id));
  }

  start(id: string): void {
    this.request(({ platform }) => {
      platform.hosts.heard(this.machineId);
      // Its answer comes when the history is over.
      start(platform, this.renter, id).catch(() => undefined);
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
      platform.store.transact((tx) => enter(platform, tx, entry));
      this.reference.enter(-amount);
    });
  }

  dispute(isOpen: boolean): void {
    this.request(({ platform }) => setDisputed(platform, this.renter, this.renter.organizationId, isOpen));
  }

  /** A workload ends by itself. */
  exit(id: string): void {
    const workload = this.workloads.get(id);
    if (!workload?.isUp) return;
    Object.assign(workload, { isUp: false, ranMs: this.ageOf(workload) });
    this.settle();
    if (this.isReachable) this.report(id);
  }

  /** Everything on the host goes down for so long, and is brought back. */
  reboot(seconds: number): void {
    // Of a run that is cut short, what the host has not said before is never attested.
    for (const id of this.workloads.keys()) this.report(id);
    const up = [...this.workloads.values()].filter(({ isUp }) => isUp);
    for (const workload of up) Object.assign(workload, { isUp: false, ranMs: this.ageOf(workload) });
    this.settle();
    this.advance(seconds);
    for (const workload of up) this.comeUp(workload);
    this.settle();
  }

  /** The host is out of reach for so long. */
  silence(seconds: number): void {
    this.disconnect();
    this.advance(seconds);
    this.connect();
  }

  /** The host does what it is told, and is out of reach before it can say so. */
  loseAnswers(seconds: number): void {
    this.isReachable = false;
    for (const command of this.inbox.splice(0)) this.obey(command);
    this.settle();
    this.advance(seconds);
    this.connect();
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
      database: join(this.folder, 'gpurent.db'),
      secretKey: Buffer.alloc(32, 7),
      logLevel: 'silent',
      logFormat: null,
      rateLimits: { perAddress: 1, perCredential: 1, attemptsPerAddress: 1, attemptsPerAccount: 1 },
    };
    const defer = (run: () => void) => void this.deferred.push(run);
    this.running = createControlPlane(config, silentLogger, { clock: this.clock, defer });
  }

  /** The host speaks to the control plane again. */
  connect(): void {
    this.isReachable = true;
    if (!this.running) return;
    const { platform } = this.running;
    platform.hosts.attach(this.machineId, {
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
    const inventory = this.inventory();
    const hello = { protocolMin: 1, protocolMax: 1, agentVersion: '', bootId: '', epoch: 0, incarnation: '' };
    greetHost(platform, this.machineId, { ...hello, inventory, instances });
    for (const result of this.unsaid.splice(0)) recordResult(platform, this.machineId, result);
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
    this.request(({ platform }) => {
      platform.store.transact((tx) => settleOrganizations(platform, tx, [this.renter.organizationId]));
    });
    const database = new BetterSqlite3(join(this.folder, 'gpurent.db'), { readonly: true });
    const rows = database
      .prepare<[], { id: string; spend_micro: number; charged: number }>(
        `
      SELECT id, spend_micro, (SELECT coalesce(-sum(amount_micro), 0) FROM transactions WHERE instance_id = instances.id) AS charged
      FROM instances`,
      )
      .all();
    const balance = database
      .prepare<[string], { balance_micro: number }>('SELECT balance_micro FROM organizations WHERE id = ?')
      .get(this.renter.organizationId);
    database.close();
    const wrong = rows.flatMap(({ id, spend_micro, charged }) => {
      const expected = this.reference.spendOf(id);
      const isRight = BigInt(spend_micro) === expected && charged === spend_micro;
      return isRight ? [] : [`${id} has spent ${spend_micro}, by its charges ${charged}, by the reference ${expected}`];
    });
    const isRight = balance !== undefined && BigInt(balance.balance_micro) === this.reference.balance;
    return isRight
      ? wrong
      : [...wrong, `the balance is ${balance?.balance_micro}, by the reference ${this.reference.balance}`];
  }

  /** How often things have come to this. */
  tally(): Record<string, number> {
    const database = new BetterSqlite3(join(this.folder, 'gpurent.db'), { readonly: true });
    const rows = database
      .prepare<[], { kind: string; times: number }>('SELECT kind, count(*) AS times FROM instance_events GROUP BY kind')
      .all();
    const absorbed = database
      .prepare<[], { times: number }>('SELECT count(*) AS times FROM meter_intervals WHERE absorbed_ms > 0')
      .get();
    database.close();
    return { absorbed: absorbed?.times ?? 0, ...Object.fromEntries(rows.map(({ kind, times }) => [kind, times])) };
  }

  close(): void {
    this.running?.platform.store.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private request(work: (controlPlane: ControlPlane) => unknown): void {
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
    const { store } = this.running.platform;
    for (const { id, status } of store.transact((tx) =>
      tx.all(query.selectFrom('instances').select(['id', 'status'])),
    )) {
      this.tell(id, { status, isUp: this.workloads.get(id)?.isUp ?? false });
    }
  }

  private tell(id: string, facts: { status?: string; isUp: boolean }): void {
    const instance = this.reference.instances.get(id);
    if (instance) Object.assign(instance, facts);
  }

  /** The host does what it was told, and says what runs; the workers of the control plane run. */
  private beat(): void {
    if (!this.running) return this.settle();
    const { platform, workers } = this.running;
    if (this.isReachable) {
      platform.hosts.heard(this.machineId);
      for (const command of this.inbox.splice(0)) this.obey(command);
      const up = [...this.workloads].filter(([, { isUp }]) => isUp);
      const running = up.map(([instanceId, workload]) => ({
        instanceId,
        runId: workload.runId,
        runningMs: this.ageOf(workload),
      }));
      recordHeartbeat(platform, this.machineId, { dockerAvailable: true, gpus: this.gpus, running, diskFreeGb: 1000 });
    }
    workers.runAll();
    this.settle();
  }

  private obey({ commandId, instanceId, sequence, desired }: Command): void {
    const workload = this.workloads.get(instanceId) ?? { runId: '', startedAt: 0, isUp: false, ranMs: 0, sequence };
    const wasUp = workload.isUp;
    if (wasUp) workload.ranMs = this.ageOf(workload);
    workload.sequence = sequence;
    this.workloads.set(instanceId, workload);
    if (desired?.$case === 'running') {
      if (!wasUp) this.comeUp(workload);
    } else workload.isUp = false;
    const observation = { ...NOTHING, state: stateOf(workload), ...this.runOf(workload) };
    if (desired?.$case === 'absent') {
      this.workloads.delete(instanceId);
      const { ranMs: runningMs } = workload;
      Object.assign(observation, { state: WorkloadState.WORKLOAD_STATE_ABSENT, exit: undefined, runningMs });
    }
    const outcome = CommandOutcome.COMMAND_OUTCOME_DONE;
    const words = { code: '', message: '', highestSequence: 0 };
    const result = { commandId, instanceId, sequence, outcome, ...words, observation };
    if (this.running && this.isReachable) recordResult(this.running.platform, this.machineId, result);
    else this.unsaid.push(result);
  }

  private report(instanceId: string): void {
    const workload = this.workloads.get(instanceId);
    if (!workload || !this.running) return;
    const observation = { ...NOTHING, state: stateOf(workload), ...this.runOf(workload) };
    const number = ++this.reports;
    recordReport(this.running.platform, this.machineId, {
      instanceId,
      number,
      sequence: workload.sequence,
      observation,
      note: '',
    });
    this.settle();
  }

  private runOf(workload: FakeWorkload) {
    const { runId, isUp, ranMs } = workload;
    if (isUp) return { runId, runningMs: this.ageOf(workload) };
    return { runId, exit: { code: 0, outOfMemory: false, ranMs, lastLines: [] } };
  }

  private comeUp(workload: FakeWorkload): void {
    Object.assign(workload, { isUp: true, runId: String(++this.runs), startedAt: this.clock.monotonic() });
  }

  private ageOf({ startedAt }: FakeWorkload): number {
    return this.clock.monotonic() - startedAt;
  }

  private disconnect(): void {
    this.isReachable = false;
    this.inbox.length = 0;
  }

  private people(): void {
    if (!this.running) return;
    const { platform } = this.running;
    const [userId, organizationId] = [platform.ids.uuid(), platform.ids.uuid()];
    const email = 'renter@example.com';
    platform.store.transact((tx) => {
      const created_at = tx.now;
      const user = { id: userId, email, name: 'renter', password_hash: '', is_operator: 1 as const, created_at };
      tx.run(query.insertInto('users').values(user));
      tx.run(
        query.insertInto('organizations').values({ id: organizationId, name: 'renter', balance_micro: 0, created_at }),
      );
    });
    const role = 'admin' as const;
    this.renter = { kind: 'session', sessionId: '', userId, email, isOperator: true, organizationId, role };
    const { token } = createEnrollmentToken(platform, this.renter, { max_uses: 1, expires_in_hours: 1 });
    this.machineId = enrollHost(platform, { token, inventory: this.inventory(), hostId: '' }).hostId;
    this.templateId = createTemplate(platform, systemBy(this.renter), { name: 'template', image: 'image:1' }).id;
  }

  private inventory() {
    return {
      name: 'host',
      region: 'test',
      publicAddress: '203.0.113.7',
      arch: 'x86_64',
      cpuModel: '',
      cpuCores: 8,
      memoryMb: 65_536,
      diskGb: 10_000,
      diskQuota: 'enforced',
      driverVersion: '',
      cudaVersion: '',
      vmCapable: false,
      gpuReleaseSupported: true,
      gpus: this.gpus,
    };
  }
}

function stateOf({ isUp }: FakeWorkload): WorkloadState {
  return isUp ? WorkloadState.WORKLOAD_STATE_RUNNING : WorkloadState.WORKLOAD_STATE_STOPPED;
}
