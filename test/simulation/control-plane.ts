import { createControlPlane, type ControlPlane } from '../../control-plane/app.js';
import { hashToken } from '../../control-plane/services/secrets/tokens.js';
import { serveHost } from '../../control-plane/grpc/host-session.js';
import type { Tx } from '../../control-plane/store/store.js';
import type { App } from '../../control-plane/services/parts/parts.js';
import type { Ids } from '../../shared/ids.js';
import { silentLogger } from '../../shared/logger.js';
import { PLAIN_TEXT } from '../harness/plain-text.js';
import { Crash } from './host.js';
import type { Faults } from './faults.js';
import { ProcessHandle, SimClock, type Timeline } from './timeline.js';
import type { Accept } from './wire.js';

export const TICK_MS = 10_000;

/** The control plane as a process that can be killed at any commit and started again on its file. */
export class SimControlPlane {
  life = new ProcessHandle();
  readonly wall = { offset: 0 };
  crashRate = 0;
  /** How likely it is killed between the use cases of a group and their commit, besides. */
  groupCrashRate = 0;
  /** Whether what hosts say in one moment is committed together. */
  groupsCommits = false;
  crashes = 0;
  /** How often a kill came between use cases that had written and the commit of their group. */
  lostGroups = 0;
  commits = 0;
  upSince = 0;
  private running: ControlPlane | undefined;

  constructor(
    readonly database: string,
    private readonly timeline: Timeline,
    private readonly fate: Faults,
    private readonly ids: Ids,
    private readonly onCrash: () => void,
  ) {
    this.life.alive = false;
  }

  get platform(): App {
    if (!this.running || !this.life.alive) throw new Crash('the control plane is down');
    return this.running.platform;
  }

  get alive(): boolean {
    return this.life.alive;
  }

  get accept(): Accept {
    const { platform, life } = this;
    return (stream, credential) => {
      this.timeline.schedule(life, 0, () =>
        this.guarded(() => serveHost(platform, silentLogger, { stream, proof: { hash: hashToken(credential) } })),
      );
    };
  }

  start(): void {
    if (this.life.alive) return;
    const life = new ProcessHandle();
    this.life = life;
    const clock = new SimClock(this.timeline, life, this.wall);
    const config = {
      httpAddress: '',
      grpcAddress: '',
      tls: PLAIN_TEXT,
      database: this.database,
      secretKey: Buffer.alloc(32, 7),
      logLevel: 'silent',
      logFormat: null,
      rateLimits: { perAddress: 1, perCredential: 1, attemptsPerAddress: 1, attemptsPerAccount: 1 },
    };
    const defer = (run: () => void) => {
      this.timeline.schedule(life, 0, () => {
        if (this.groupsCommits && this.fate.strikes('before a commit', this.groupCrashRate)) this.crash();
        else this.guarded(run);
      });
    };
    const commitsAlone = !this.groupsCommits;
    this.running = createControlPlane(config, silentLogger, { clock, ids: this.ids, defer, commitsAlone });
    this.interrupt(this.running.platform, life);
    this.upSince = this.timeline.now;
    this.tick(life);
  }

  /** kill -9. */
  crash(): void {
    if (!this.life.alive || !this.running) return;
    this.life.alive = false;
    this.crashes += 1;
    if (this.running.platform.store.durable()) this.lostGroups += 1;
    this.running.platform.store.close();
    this.onCrash();
  }

  stop(): void {
    if (!this.life.alive) return;
    this.life.alive = false;
    this.running?.platform.store.close();
  }

  /** What a killed program throws is nobody's concern. */
  private guarded(run: () => void): void {
    try {
      run();
    } catch (error) {
      if (!(error instanceof Crash)) throw error;
    }
  }

  private tick(life: ProcessHandle): void {
    this.timeline.schedule(life, TICK_MS, () => {
      this.running?.workers.runAll();
      this.tick(life);
    });
  }

  /**
   * Killed before a commit it has not happened; after it it has, and nobody was told. In a group, a kill after a use case is one before
   * its commit. A planned kill can wait for a use case that has written; one by chance comes after any.
   */
  private interrupt(platform: App, life: ProcessHandle): void {
    const { store } = platform;
    const transact = store.transact.bind(store);
    const faulty = <T>(work: (tx: Tx) => T): T => {
      if (!life.alive) throw new Crash('the control plane was killed');
      const isKilled = this.fate.byChance(this.crashRate);
      const { result, hasWritten } = transact((tx) => {
        const done = { result: work(tx), hasWritten: store.isWriting() };
        const isPlanned = this.fate.asPlanned(done.hasWritten ? 'before a commit' : 'before a read ends');
        if (isKilled || isPlanned) throw new Crash('killed before the commit');
        return done;
      });
      this.commits += 1;
      const after = hasWritten ? 'after a commit' : 'after a read';
      if (this.fate.strikes(after, this.crashRate)) throw new Crash('killed after the commit');
      return result;
    };
    store.transact = <T>(work: (tx: Tx) => T): T => {
      try {
        return faulty(work);
      } catch (error) {
        if (error instanceof Crash && life.alive) this.crash();
        throw error;
      }
    };
  }
}
