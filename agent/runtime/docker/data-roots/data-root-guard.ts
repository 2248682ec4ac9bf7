import { SetupError } from '../../../../shared/coded-error.js';
import type { Logger } from '../../../../shared/logger.js';
import {
  UNDO_SWITCH,
  UNKNOWN_DATA_ROOT,
  describeDataRoot,
  describeHidden,
  hiddenInstances,
  isSameDataRoot,
  isSamePlace,
  type DataRoot,
} from '../../../domain/data-root.js';
import { Failure } from '../../../domain/failure.js';
import type { DataRootNotes } from './data-root-notes.js';
import { DEADLINE_MS, type DockerInfo, type Engine } from '../engine.js';
import { LABEL } from '../labels.js';

/** Docker's current data root, compared with those in which this host's instances were created. */
export interface DataRootView {
  now: DataRoot;
  /** Instances that Docker shows. */
  shown: ReadonlySet<string>;
  /** The data root of each instance that can have a container. */
  madeIn: ReadonlyMap<string, DataRoot>;
  /** Why Docker does not show some of them, in words for the host owner; undefined if it shows all that still exist. */
  complaint: string | undefined;
}

/**
 * Reads the current view. Throws Failure DOCKER_UNREACHABLE, also if Docker was restarted with another data root
 * meanwhile.
 */
export async function viewDataRoot(engine: Engine, notes: DataRootNotes, hostId: string): Promise<DataRootView> {
  const before = dataRootOf(await engine.info());
  const shown = await shownBy(engine, hostId);
  const now = dataRootOf(await engine.info());
  if (!isSameDataRoot(before, now)) throw new Failure('DOCKER_UNREACHABLE', 'Docker was restarted with other settings');
  const madeIn = await notes.read();
  const hidden = hiddenInstances(madeIn, now, shown);
  const first = madeIn.get(hidden[0] ?? '') ?? UNKNOWN_DATA_ROOT;
  return { now, shown, madeIn, complaint: hidden.length === 0 ? undefined : describeHidden(hidden, first, now) };
}

export function dataRootOf({ DockerRootDir, Driver, SecurityOptions, ID }: DockerInfo): DataRoot {
  const isRemapped = (SecurityOptions ?? []).some((option) => option.split(',').includes('name=userns'));
  return { path: DockerRootDir, storageDriver: Driver, isRemapped, engineId: ID ?? '' };
}

/** The part of `DataRootGuard` that workloads need. */
export type DataRoots = Pick<DataRootGuard, 'require' | 'confirm' | 'note' | 'forget'>;

/**
 * Keeps the agent from treating an instance as gone while Docker does not show it. A Docker that was restarted with
 * another data root, storage driver or remapping of user namespaces shows none of its earlier containers; for this host
 * it counts as unreachable.
 */
export class DataRootGuard {
  /** The data root that this agent uses; undefined before `require`. */
  private present: DataRoot | undefined;
  private complaint: string | undefined;

  constructor(
    private readonly engine: Engine,
    private readonly notes: DataRootNotes,
    private readonly hostId: string,
    private readonly logger: Logger,
  ) {}

  /**
   * Makes Docker's current data root the agent's. Throws SetupError, as for a Docker that is away, if instances of this
   * host are in another one.
   */
  async require(): Promise<void> {
    const view = await viewDataRoot(this.engine, this.notes, this.hostId);
    const { now, shown, madeIn, complaint } = view;
    if (complaint !== undefined) {
      const cause = new Failure('DOCKER_UNREACHABLE', 'Docker on this host does not show the instances made here');
      throw new SetupError(`${complaint}; ${UNDO_SWITCH}`, { cause });
    }
    for (const instanceId of madeIn.keys()) if (!shown.has(instanceId)) await this.notes.forget(instanceId);
    await this.noteShown(view);
    this.present = now;
  }

  /** Throws Failure DOCKER_UNREACHABLE unless an instance that Docker does not show is really gone. */
  async confirm(): Promise<void> {
    const now = dataRootOf(await this.engine.recentInfo());
    if (this.present && isSameDataRoot(now, this.present)) return this.tell(undefined);
    const view = await viewDataRoot(this.engine, this.notes, this.hostId);
    this.tell(this.judge(view));
    if (this.complaint !== undefined)
      throw new Failure('DOCKER_UNREACHABLE', 'Docker on this host does not show the instances that were made here');
    if (!this.present) return;
    await this.noteShown(view);
    this.present = view.now;
  }

  /** Notes the data root in which an instance is about to be created. */
  async note(instanceId: string): Promise<void> {
    await this.notes.note(instanceId, this.present ?? dataRootOf(await this.engine.info()));
  }

  /** Removes the note of an instance that is gone. */
  forget(instanceId: string): Promise<void> {
    return this.notes.forget(instanceId);
  }

  /** Notes instances that have moved with the data root, and those that an older agent created. */
  private async noteShown({ now, shown, madeIn }: DataRootView): Promise<void> {
    for (const instanceId of shown) {
      const noted = madeIn.get(instanceId);
      if (!noted || !isSameDataRoot(noted, now)) await this.notes.note(instanceId, now);
    }
  }

  /**
   * Returns why the agent cannot use this data root; undefined if it can. In a new place the agent must restart,
   * because it found out at its start, for the old place, whether disk sizes are enforced and how much space is free.
   */
  private judge({ now, complaint }: DataRootView): string | undefined {
    if (complaint !== undefined) return `${complaint}; ${UNDO_SWITCH}`;
    if (!this.present || isSamePlace(now, this.present)) return undefined;
    return `Docker keeps its containers in ${describeDataRoot(now)} since it was restarted, and in ${describeDataRoot(this.present)} before: restart the agent ("systemctl restart gpurent-agent")`;
  }

  private tell(complaint: string | undefined): void {
    if (complaint === this.complaint) return;
    this.complaint = complaint;
    if (complaint === undefined) this.logger.info('Docker shows the instances of this host again');
    else this.logger.error(complaint);
  }
}

async function shownBy(engine: Engine, hostId: string): Promise<Set<string>> {
  const label = [LABEL.instance, `${LABEL.host}=${hostId}`];
  const containers = await engine.call('list containers', DEADLINE_MS.inspect, (docker) =>
    docker.listContainers({ all: true, filters: { label } }),
  );
  return new Set(containers.map(({ Labels }) => Labels[LABEL.instance] ?? ''));
}
