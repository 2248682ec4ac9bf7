import { readdirSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock, Timer } from '../../shared/clock.js';
import { SetupError, messageOf } from '../../shared/coded-error.js';
import { UpgradeState } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { Logger } from '../../shared/logger.js';
import { plainLine } from '../../shared/plain-text.js';
import { isNewer, versionOfTarball } from '../../shared/release/newer.js';
import { verifyRelease } from '../../shared/release/verify.js';
import { MINUTE_MS } from '../../shared/time.js';
import { LONGEST_REASON, shownVersion, stillCounts, upgradeRefusal, type FailedUpgrade } from '../domain/upgrade.js';
import type { OpenRelease } from '../link/dial.js';
import type { Send } from '../link/outbox.js';
import { FailureFile } from './failure-file.js';
import { ReleaseLoader, UpgradeFault } from './loader.js';

/** How often the agent looks whether the upgrade unit has failed. */
const LOOK_MS = 5_000;
/** Longer than the upgrade unit can run. */
const LONGEST_INSTALL_MS = 50 * MINUTE_MS;

export interface UpgradeParts {
  /** Where a release is loaded; the upgrade unit watches `ready` in it. */
  folder: string;
  /** The public key of releases. */
  key: string;
  /** Returns why this host takes no upgrades; empty: it does. */
  obstacles: () => string[];
  /** Returns what is missing although the owner of the host allows upgrades. */
  missing: () => string[];
  /** Asks the control plane for files of the release. */
  open: OpenRelease;
  freeBytes: (folder: string) => Promise<number>;
}

/** Those of a host whose owner does not allow upgrades. */
export const NO_UPGRADES: UpgradeParts = {
  folder: '/nonexistent',
  key: '/nonexistent',
  obstacles: () => ['its owner does not allow it'],
  missing: () => [],
  open: () => {
    throw new Error('no upgrade is allowed');
  },
  freeBytes: async () => 0,
};

/** An upgrade that the agent has begun. */
interface Current {
  version: string;
  state: UpgradeState;
}

/**
 * Loads the release that the control plane names, checks it, and puts it where the upgrade unit finds it, if the owner of the host
 * allows it. The unit, which trusts nothing of this, installs it. One upgrade at a time.
 */
export class Upgrades {
  private readonly failures: FailureFile;
  private failure: FailedUpgrade | undefined;
  private current: Current | undefined;
  private send: Send | undefined;
  private timer: Timer | undefined;
  private installSince = 0;
  private readonly stopping = new AbortController();
  private readonly loading: string;
  private readonly ready: string;

  constructor(
    private readonly parts: UpgradeParts,
    /** The version of this agent. */
    private readonly own: string,
    private readonly clock: Clock,
    private readonly random: () => number,
    private readonly logger: Logger,
  ) {
    this.loading = join(parts.folder, 'loading');
    this.ready = join(parts.folder, 'ready');
    this.failures = new FailureFile(join(parts.folder, 'failed.json'));
  }

  /** Whether the control plane may ask for upgrades. */
  get areTaken(): boolean {
    return this.parts.obstacles().length === 0;
  }

  /** Returns what the owner of the host should know: what is missing, and the latest failure. */
  get faults(): string[] {
    const { failure } = this;
    return [
      ...this.parts.missing(),
      ...(failure ? [`the upgrade to ${failure.version} has failed: ${failure.reason}`] : []),
    ];
  }

  /** Reads what an earlier agent, or the upgrade unit, has left. */
  start(): void {
    this.failure = this.failures.read();
    // The owner has installed it, or a later one, meanwhile.
    if (this.failure && !isNewer(this.failure.version, this.own)) {
      this.failure = undefined;
      void this.attempt(() => this.failures.remove());
    }
    const version = versionIn(this.ready);
    if (version !== undefined) this.awaitInstall(version);
  }

  stop(): void {
    this.stopping.abort(new Error('the agent is stopping'));
    this.timer?.cancel();
    this.send = undefined;
  }

  connected(send: Send): void {
    this.send = send;
    if (this.current) this.report(this.current.version, this.current.state);
    else if (this.failure) this.reportFailure(this.failure);
  }

  disconnected(): void {
    this.send = undefined;
  }

  /** Begins an upgrade, or reports why not. Does nothing if it is under way. */
  take(version: string): void {
    const { current, failure } = this;
    if (current?.version === version) return;
    const refusal = current
      ? `the upgrade to ${current.version} is under way`
      : upgradeRefusal(version, this.own, this.parts.obstacles());
    if (refusal !== undefined) {
      const shown = shownVersion(version);
      this.logger.warn({ version: shown, reason: refusal }, 'an upgrade that the control plane wishes is refused');
      return this.report(shown, UpgradeState.UPGRADE_STATE_FAILED, refusal);
    }
    if (failure && stillCounts(failure, version, this.clock.now())) return this.reportFailure(failure);
    this.logger.info({ version }, 'the agent loads a release to upgrade itself');
    this.enter({ version, state: UpgradeState.UPGRADE_STATE_LOADING });
    void this.prepare(version).catch((error: unknown) => {
      if (!this.stopping.signal.aborted) void this.fail(version, reasonOf(error));
    });
  }

  /** Loads and checks a release, and makes it visible to the upgrade unit. */
  private async prepare(version: string): Promise<void> {
    const { folder, key, open, freeBytes } = this.parts;
    const { clock, random } = this;
    this.failure = undefined;
    await this.failures.remove();
    for (const remains of [this.loading, this.ready]) await remove(remains);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await mkdir(this.loading, { mode: 0o700 });
    const loader = new ReleaseLoader({ open, clock, random, freeBytes }, this.loading, this.stopping.signal);
    const tarball = await loader.load(version);
    const said = await verifyRelease(tarball, key);
    this.stopping.signal.throwIfAborted();
    // The owner may have changed the settings of the host meanwhile.
    const obstacle = upgradeRefusal(version, this.own, this.parts.obstacles());
    if (obstacle !== undefined) throw new UpgradeFault(obstacle);
    await rename(this.loading, this.ready);
    this.logger.info({ version }, `the release is handed to the upgrade unit: ${said}`);
    this.awaitInstall(version);
  }

  /** Waits until the upgrade unit replaces this agent, or says that it has failed. */
  private awaitInstall(version: string): void {
    this.enter({ version, state: UpgradeState.UPGRADE_STATE_INSTALLING });
    this.installSince = this.clock.monotonic();
    this.planLook();
  }

  private planLook(): void {
    this.timer = this.clock.schedule(LOOK_MS, () => this.lookForFailure());
  }

  private lookForFailure(): void {
    const { current } = this;
    if (!current) return;
    const found = this.failures.read();
    if (found?.version === current.version) return this.end(found);
    if (this.clock.monotonic() - this.installSince < LONGEST_INSTALL_MS) return this.planLook();
    void this.fail(
      current.version,
      'the upgrade unit has not installed the release: see "journalctl -u gpurent-agent-upgrade" on the host',
    );
  }

  /** Removes what was loaded before the next upgrade can begin. Never rejects. */
  private async fail(version: string, text: string): Promise<void> {
    const failure = { version, reason: plainLine(text, LONGEST_REASON), at: this.clock.now() };
    for (const remains of [this.loading, this.ready]) await this.attempt(() => remove(remains));
    await this.attempt(() => this.failures.write(failure));
    this.end(failure);
  }

  /** Notes that the upgrade is over, and has failed. */
  private end(failure: FailedUpgrade): void {
    this.current = undefined;
    this.failure = failure;
    this.logger.error({ version: failure.version }, `the upgrade of the agent has failed: ${failure.reason}`);
    this.reportFailure(failure);
  }

  private enter(current: Current): void {
    this.current = current;
    this.report(current.version, current.state);
  }

  private reportFailure({ version, reason }: FailedUpgrade): void {
    this.report(version, UpgradeState.UPGRADE_STATE_FAILED, reason);
  }

  private report(version: string, state: UpgradeState, reason = ''): void {
    const value = { version, state, reason: plainLine(reason, LONGEST_REASON) };
    this.send?.({ message: { $case: 'upgradeReport', value } }, 'must go');
  }

  private async attempt(work: () => Promise<void>): Promise<void> {
    await work().catch((error: unknown) =>
      this.logger.warn(`what an upgrade has left cannot be changed: ${messageOf(error)}`),
    );
  }
}

function remove(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true });
}

/** Returns the version of the release in a folder; undefined: there is none. */
function versionIn(folder: string): string | undefined {
  try {
    return readdirSync(folder).flatMap((name) => versionOfTarball(name) ?? [])[0];
  } catch {
    return undefined;
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof UpgradeFault || error instanceof SetupError) return messageOf(error);
  return `the release could not be prepared: ${messageOf(error)}`;
}
