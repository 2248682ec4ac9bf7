import { SetupError } from '../../../shared/coded-error.js';
import type { Logger } from '../../../shared/logger.js';
import {
  UNDO_SWITCH,
  UNKNOWN_DATA_ROOT,
  describeDataRoot,
  describeHidden,
  hiddenInstances,
  isSameDataRoot,
  isSamePlace,
  type DataRoot,
} from '../../domain/data-root.js';
import { Failure } from '../../domain/failure.js';
import type { DataRootNotes } from './data-root-notes.js';
import { DEADLINE_MS, type DockerInfo, type Engine } from './engine.js';
import { LABEL } from './labels.js';

/** How Docker's present data root stands to the instances of this host. */
export interface DataRootView {
  now: DataRoot;
  /** Instances that Docker shows. */
  shown: ReadonlySet<string>;
  /** Instances that may have a container, and where. */
  madeIn: ReadonlyMap<string, DataRoot>;
  /** What keeps Docker from showing some of these, in words for the host's owner; undefined where it shows all that are there. */
  complaint: string | undefined;
}

/** Reads it. Throws Failure DOCKER_UNREACHABLE, also where Docker was restarted meanwhile. */
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

/** What keeps instances from being taken for gone. */
export type DataRoots = Pick<DataRootGuard, 'require' | 'confirm' | 'note' | 'forget'>;

/**
 * Keeps an instance from being taken for gone while Docker does not show it. A Docker that was restarted with another data root,
 * storage driver or remapping of user namespaces shows no container that it had before; it is no Docker of this host then.
 */
export class DataRootGuard {
  /** What this agent works on; undefined before it has looked. */
  private present: DataRoot | undefined;
  private complaint: string | undefined;

  constructor(
    private readonly engine: Engine,
    private readonly notes: DataRootNotes,
    private readonly hostId: string,
    private readonly logger: Logger,
  ) {}

  /** Takes Docker's data root for this agent's. Throws SetupError where instances of this host are in another one. */
  async require(): Promise<void> {
    const view = await viewDataRoot(this.engine, this.notes, this.hostId);
    const { now, shown, madeIn, complaint } = view;
    if (complaint !== undefined) throw new SetupError(`${complaint}; ${UNDO_SWITCH}`);
    for (const instanceId of madeIn.keys()) if (!shown.has(instanceId)) await this.notes.forget(instanceId);
    await this.noteShown(view);
    this.present = now;
  }

  /** Throws Failure DOCKER_UNREACHABLE unless what Docker has just not shown is really not there. */
  async confirm(): Promise<void> {
    const now = dataRootOf(await this.engine.info());
    if (this.present && isSameDataRoot(now, this.present)) return this.tell(undefined);
    const view = await viewDataRoot(this.engine, this.notes, this.hostId);
    this.tell(this.judge(view));
    if (this.complaint !== undefined)
      throw new Failure('DOCKER_UNREACHABLE', 'Docker on this host does not show the instances that were made here');
    if (!this.present) return;
    await this.noteShown(view);
    this.present = view.now;
  }

  /** Notes where an instance is about to be made. */
  async note(instanceId: string): Promise<void> {
    await this.notes.note(instanceId, this.present ?? dataRootOf(await this.engine.info()));
  }

  /** Forgets an instance that is gone. */
  forget(instanceId: string): Promise<void> {
    return this.notes.forget(instanceId);
  }

  /** Those that have moved along, and those that an older agent made. */
  private async noteShown({ now, shown, madeIn }: DataRootView): Promise<void> {
    for (const instanceId of shown) {
      const noted = madeIn.get(instanceId);
      if (!noted || !isSameDataRoot(noted, now)) await this.notes.note(instanceId, now);
    }
  }

  /** Whether disks are held to their size, and how much of them is free, was found out for the place at the agent's start. */
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
