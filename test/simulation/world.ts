import BetterSqlite3 from 'better-sqlite3';
import { createHash } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SessionCaller } from '../../control-plane/domain/caller.js';
import { Refusal } from '../../control-plane/domain/refusal.js';
import { createEnrollmentToken, enrollHost } from '../../control-plane/services/machines/enrollment.js';
import { setSpendCaps } from '../../control-plane/services/billing/caps/spend-caps.js';
import { createOffer } from '../../control-plane/services/catalogue/offers.js';
import { grantCredit } from '../../control-plane/services/billing/ledger/credits.js';
import { createTemplate, systemBy } from '../../control-plane/services/catalogue/template-editing.js';
import { backUp, restore } from '../../control-plane/store/backup.js';
import { query } from '../../control-plane/store/sql.js';
import type { ControlMessage } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { memoryFolder } from '../harness/memory-folder.js';
import { newDatabase } from '../harness/new-database.js';
import { SimControlPlane } from './control-plane.js';
import { Crash, SimHost } from './host.js';
import { Faults } from './faults.js';
import { Habits } from './habits.js';
import { Random } from './random.js';
import { CAPS, SimLimits } from './sim-limits.js';
import { EPOCH_MS, ProcessHandle, Timeline, settle } from './timeline.js';
import { Network } from './wire.js';
import { Witness } from './machine-view.js';

export interface Scale {
  hosts: number;
  gpusPerHost: number;
  organizations: number;
  /** Whether what hosts say in one moment is committed together. */
  groupsCommits?: boolean;
  /** Whether renters and admins limit what is spent. */
  hasLimits?: boolean;
}

export interface Counts {
  steps: number;
  messages: number;
  lost: number;
  duplicated: number;
  crashes: number;
  dockerCalls: number;
  dockerFailures: number;
  lateCalls: number;
  simulatedMs: number;
  commits: number;
}

/** A request and what became of it: 'done', a refusal's code, 'killed', 'down', or 'waiting' for an answer. */
export interface Attempted {
  outcome: string;
}

const KEPT_BACKUPS = 3;
/** What renters begin with: the first never runs out, the others soon. */
const CREDITS_MICRO = [1_000_000_000_000, 90_000_000, 70_000_000];

/** A whole marketplace in one process, in simulated time: what is real of it is everything but network, Docker and clock. */
export class World {
  readonly timeline = new Timeline();
  readonly random: Random;
  readonly fate: Faults;
  readonly hosts: SimHost[] = [];
  readonly networks: Network[] = [];
  readonly controlPlane: SimControlPlane;
  readonly renters: SessionCaller[] = [];
  readonly templates: string[] = [];
  readonly offers: string[] = [];
  readonly witness = new Witness();
  readonly limits: SimLimits | undefined;
  readonly habits: Habits | undefined;
  operator!: SessionCaller;
  readonly faults = { docker: { failure: 0, late: 0, diskFull: 0 }, wire: { loss: 0, duplication: 0, reordering: 0 } };
  private readonly folder: string;
  private readonly trace = createHash('sha256');
  /** When a wall clock was last set. */
  jumpedAt = -Infinity;
  /** When the invariants were last looked at. */
  lookedAt = 0;
  /** When the operator last said that the clock is right. */
  confirmedAt = -Infinity;
  restoredAt = -Infinity;
  /** When the schedule of an instance was last changed by its renter. */
  readonly plannedAt = new Map<string, number>();
  /** How long the next step takes at least, in milliseconds. */
  patience = 0;
  /** The newest change of a status that was looked at. */
  edgesSeen = 0;
  /** The newest event of each stream that was looked at. */
  eventsSeen = new Map<string, number>();
  private rival: SimControlPlane | undefined;
  private readonly backups: string[] = [];
  private copies = 0;
  private downUntil = 0;
  private reader: BetterSqlite3.Database | undefined;
  /** What the reader has prepared. */
  private readonly prepared = new Map<string, BetterSqlite3.Statement>();

  constructor(
    readonly seed: number,
    readonly scale: Scale,
    private readonly tell: (line: string) => void = () => {},
  ) {
    this.random = new Random(seed);
    this.limits = scale.hasLimits ? new SimLimits(seed) : undefined;
    this.habits = scale.hasLimits ? new Habits(seed) : undefined;
    this.fate = new Faults(this.random);
    this.folder = memoryFolder('gpurent-sim-');
    const database = join(this.folder, 'gpurent.db');
    writeFileSync(database, newDatabase());
    this.controlPlane = new SimControlPlane(database, this.timeline, this.fate, new Random(seed ^ 0x5eed).ids(), () =>
      this.onControlPlaneCrash(),
    );
    this.controlPlane.groupsCommits = scale.groupsCommits ?? false;
  }

  static async make(seed: number, scale: Scale, tell?: (line: string) => void): Promise<World> {
    const world = new World(seed, scale, tell);
    world.controlPlane.start();
    world.logEdges();
    world.people();
    for (let index = 0; index < scale.hosts; index++) world.addHost(index);
    await world.timeline.advance(20_000);
    world.market();
    if (world.limits) world.setCaps();
    return world;
  }

  /** Reads the file beside the control plane, as an inspector would. */
  rows<T>(sql: string, ...parameters: unknown[]): T[] {
    this.reader ??= new BetterSqlite3(this.controlPlane.database, { readonly: true });
    const statement = this.prepared.get(sql) ?? this.reader.prepare(sql);
    this.prepared.set(sql, statement);
    return statement.all(...parameters) as T[];
  }

  /** Calls a use case as a request would; what it refuses, and a crash in the middle, are answers like others. */
  attempt(what: string, request: () => unknown): Attempted {
    const attempted: Attempted = { outcome: 'waiting' };
    const answer = (outcome: string) => {
      attempted.outcome = outcome;
      this.note(outcome === 'done' ? what : `${what}: ${outcome}`);
    };
    if (!this.controlPlane.alive) {
      answer('down');
      return attempted;
    }
    try {
      const result = request();
      if (result instanceof Promise) {
        this.note(`${what} ...`);
        result.then(
          () => answer('done'),
          (error: unknown) => answer(this.outcomeOf(error)),
        );
      } else answer('done');
    } catch (error) {
      answer(this.outcomeOf(error));
    }
    return attempted;
  }

  /** A copy of the store is put aside. */
  takeBackup(): void {
    if (!this.controlPlane.alive) return;
    this.note('backup');
    this.backups.push(this.copyStore());
    for (const old of this.backups.splice(0, this.backups.length - KEPT_BACKUPS)) rmSync(old);
  }

  /** An older copy takes the place of the store. */
  restoreBackup(awayMs = this.random.between(1_000, 600_000)): void {
    const backup = this.random.pick(this.backups);
    if (backup === undefined || this.rival) return;
    this.note('restore');
    this.replaceStore(backup, awayMs);
    this.skipSeen();
    this.witness.storeRestored(this.hosts.map(({ machineId }) => machineId));
    this.restoredAt = this.timeline.now;
  }

  /** Somebody starts a second control plane on an older copy, and some hosts find that one. */
  startRival(): void {
    const backup = this.random.pick(this.backups);
    if (backup === undefined || this.rival) return;
    this.note('rival');
    const file = join(this.folder, `rival-${this.copies++}.db`);
    backUp(backup, file);
    const ids = new Random(this.seed ^ this.copies).ids();
    const rival = new SimControlPlane(file, this.timeline, this.fate, ids, () => {});
    this.rival = rival;
    rival.start();
    for (const network of this.networks) {
      network.misled = this.random.chance(0.5);
      if (network.misled) network.drop();
    }
    const misled = this.hosts.filter((host) => host.network?.misled === true);
    this.witness.storeRestored(misled.map(({ machineId }) => machineId));
    this.timeline.schedule(new ProcessHandle(), this.random.between(1_000, 1_200_000), () => this.endRival());
  }

  /** It is stopped, and its hosts are told by a raised epoch who is in charge. */
  endRival(): void {
    if (!this.rival) return;
    this.note('rival ends');
    this.rival.stop();
    this.rival = undefined;
    for (const network of this.networks) {
      network.misled = false;
      network.reap(false);
    }
    const own = this.copyStore();
    this.replaceStore(own, this.random.between(1_000, 600_000));
    rmSync(own);
  }

  private copyStore(): string {
    const file = join(this.folder, `backup-${this.copies++}.db`);
    backUp(this.controlPlane.database, file);
    return file;
  }

  private replaceStore(backup: string, awayMs: number): void {
    this.stayDown(awayMs);
    this.reader?.close();
    this.reader = undefined;
    this.prepared.clear();
    const { replaced } = restore(backup, this.controlPlane.database, EPOCH_MS + this.timeline.now);
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${replaced}${suffix}`, { force: true });
  }

  /** An older copy of the store has other rows from here on. */
  private skipSeen(): void {
    this.edgesSeen = this.rows<{ last: number | null }>('SELECT max(id) AS last FROM sim_edges')[0]?.last ?? 0;
    const newest = this.rows<{ stream: string; number: number }>(
      'SELECT stream, max(number) AS number FROM events GROUP BY stream',
    );
    this.eventsSeen = new Map(newest.map(({ stream, number }) => [stream, number]));
  }

  get upSince(): number {
    return this.controlPlane.upSince;
  }

  /** What happened, for the digest that two runs of a seed must share. */
  note(what: string): void {
    this.tell(`${this.timeline.now} ${what}`);
    this.trace.update(`${this.timeline.now} ${what}\n`);
  }

  digest(): string {
    return this.trace.copy().digest('hex');
  }

  counts(steps: number): Counts {
    const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
    return {
      steps,
      messages: sum(this.networks.map(({ messages }) => messages)),
      lost: sum(this.networks.map(({ lost }) => lost)),
      duplicated: sum(this.networks.map(({ duplicated }) => duplicated)),
      crashes: this.controlPlane.crashes + sum(this.hosts.map(({ crashes }) => crashes)),
      dockerCalls: sum(this.hosts.map(({ docker }) => docker.calls)),
      dockerFailures: sum(this.hosts.map(({ docker }) => docker.failed)),
      lateCalls: sum(this.hosts.map(({ docker }) => docker.late)),
      simulatedMs: this.timeline.now,
      commits: this.controlPlane.commits,
    };
  }

  async close(): Promise<void> {
    for (const host of this.hosts) host.stop();
    this.rival?.stop();
    this.controlPlane.stop();
    this.reader?.close();
    await settle();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private outcomeOf(error: unknown): string {
    if (error instanceof Refusal) return error.code;
    if (error instanceof Crash || !this.controlPlane.alive) return 'killed';
    throw error;
  }

  /** The control plane is gone for so long; one that is away already comes back as it would have. */
  stayDown(ms: number): void {
    if (!this.controlPlane.alive) return;
    this.downUntil = this.timeline.now + ms;
    this.controlPlane.crash();
  }

  comeBack(): void {
    this.downUntil = 0;
    this.controlPlane.start();
  }

  private onControlPlaneCrash(): void {
    for (const network of this.networks) network.reap(false);
    const awayMs = Math.max(this.downUntil - this.timeline.now, this.random.between(1_000, 60_000));
    this.timeline.schedule(new ProcessHandle(), awayMs, () => {
      if (this.timeline.now >= this.downUntil) this.controlPlane.start();
    });
  }

  /** Every change of a status, one by one: a use case may make several in one transaction. */
  private logEdges(): void {
    const database = new BetterSqlite3(this.controlPlane.database);
    database.exec(`
      CREATE TABLE sim_edges (id INTEGER PRIMARY KEY, instance_id TEXT, was TEXT, became TEXT);
      CREATE TRIGGER sim_edges AFTER UPDATE OF status ON instances WHEN OLD.status <> NEW.status BEGIN
        INSERT INTO sim_edges (instance_id, was, became) VALUES (OLD.id, OLD.status, NEW.status);
      END`);
    database.close();
  }

  /** What is sent must stand in the store already; what a host hears of a restored store, it has spoken to. */
  private overhear(machineId: string, { message }: ControlMessage, from: ProcessHandle): void {
    if (from !== this.controlPlane.life) return;
    if (message?.$case === 'welcome') this.witness.unheard.delete(machineId);
    if (message?.$case !== 'command') return;
    const { commandId, instanceId } = message.value;
    const known = this.rows('SELECT 1 FROM commands WHERE id = ?', commandId).length > 0;
    if (!known) this.witness.wrong('sent means committed before', `${commandId} of ${instanceId}`);
  }

  private people(): void {
    const { platform } = this.controlPlane;
    platform.store.transact((tx) => {
      const user = (name: string, is_operator: 0 | 1) => {
        const id = platform.ids.uuid();
        const email = `${name}@example.com`;
        tx.run(
          query.insertInto('users').values({ id, email, name, password_hash: '', is_operator, created_at: tx.now }),
        );
        const organizationId = platform.ids.uuid();
        const organization = {
          id: organizationId,
          name,
          balance_micro: 0,
          payments_frozen_at: null,
          created_at: tx.now,
        };
        tx.run(query.insertInto('organizations').values(organization));
        const caller: SessionCaller = {
          kind: 'session',
          sessionId: '',
          userId: id,
          email,
          isOperator: is_operator === 1,
          isWithFactor: false,
          lacksFactor: false,
          organizationId,
          role: 'admin',
        };
        return caller;
      };
      this.operator = user('operator', 1);
      for (let index = 0; index < this.scale.organizations; index++) this.renters.push(user(`renter${index}`, 0));
    });
    for (const [index, { organizationId }] of this.renters.entries()) {
      const amount_micro = CREDITS_MICRO[index % CREDITS_MICRO.length] ?? 1;
      grantCredit(platform, this.operator, organizationId, { amount_micro, reason: 'simulation' });
    }
    for (const fields of [{}, { mode: ['jupyter' as const] }, { mode: [] }]) {
      const request = { name: 'template', image: 'image:1', ...fields };
      this.templates.push(createTemplate(platform, systemBy(this.operator), request).id);
    }
  }

  private addHost(index: number): void {
    const { platform } = this.controlPlane;
    const options = { name: `host${index}`, gpus: this.scale.gpusPerHost, folder: this.folder };
    const note = (what: string) => this.note(`${options.name}: ${what}`);
    const { timeline, random, fate, witness, habits } = this;
    const host = new SimHost(options, timeline, random, fate, this.faults.docker, witness, note, habits);
    const { token } = createEnrollmentToken(platform, this.operator, { max_uses: 1, expires_in_hours: 1 });
    const { hostId, credential } = enrollHost(platform, {
      token,
      inventory: host.inventory(),
      hostId: '',
      earlier: [],
    });
    host.machineId = hostId;
    host.credential = credential;
    const network: Network = new Network(
      this.timeline,
      this.random,
      this.fate,
      this.faults.wire,
      () => {
        const found = network.misled && this.rival ? this.rival : this.controlPlane;
        if (!found.alive) return undefined;
        const { life, accept } = found;
        if (found !== this.controlPlane) return { life, accept };
        const hears = () => this.witness.hears(hostId, this.timeline.now, this.upSince);
        return { life, accept: (stream, credential) => (stream.on('data', hears), accept(stream, credential)) };
      },
      (message, from) => this.overhear(hostId, message, from),
    );
    host.network = network;
    this.hosts.push(host);
    this.networks.push(network);
    host.startAgent();
  }

  private setCaps(): void {
    for (const [index, caps] of CAPS.entries()) {
      const renter = this.renters[index];
      const all = { burn_per_hour_micro: null, ...caps };
      if (renter) this.attempt('caps', () => setSpendCaps(this.controlPlane.platform, renter, null, all));
    }
  }

  private market(): void {
    for (const host of this.hosts) {
      for (const num_gpus of [1, 2]) {
        const prices = { price_per_hour_micro: 36_000_000 * num_gpus, storage_price_per_gb_hour_micro: 100_000 };
        const offer = { machine_id: host.machineId, num_gpus, ...prices };
        this.offers.push(createOffer(this.controlPlane.platform, this.operator, offer).id);
      }
    }
  }
}
