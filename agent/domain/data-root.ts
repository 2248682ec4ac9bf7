/** A data root of Docker. Docker shows only the containers of its present data root. */
export interface DataRoot {
  /** Its folder. If user namespaces are remapped, the subfolder for the remapped ids: `/var/lib/docker/100000.100000`. */
  path: string;
  storageDriver: string;
  isRemapped: boolean;
  /** The id of the Docker Engine. Docker 23 and later keep it in the folder, so it differs if the disk of the folder is not mounted. */
  engineId: string;
}

/** The data root of an instance whose record cannot be read; it equals no other. */
export const UNKNOWN_DATA_ROOT: DataRoot = { path: '', storageDriver: '', isRemapped: false, engineId: '' };

export function isSameDataRoot(one: DataRoot, other: DataRoot): boolean {
  return isSamePlace(one, other) && one.engineId === other.engineId;
}

/** Tells whether two data roots are in the same place, ignoring the engine id, which an upgrade of Docker can change. */
export function isSamePlace(one: DataRoot, other: DataRoot): boolean {
  return one.path === other.path && one.storageDriver === other.storageDriver && one.isRemapped === other.isRemapped;
}

/**
 * Returns the ids of the instances whose containers are in another data root than the present one, sorted. Docker does not show them,
 * but their disks still exist. An instance of the present data root that Docker does not show is gone; one that Docker shows has moved
 * with its data root.
 */
export function hiddenInstances(
  madeIn: ReadonlyMap<string, DataRoot>,
  now: DataRoot,
  shown: ReadonlySet<string>,
): string[] {
  return [...madeIn]
    .filter(([instanceId, root]) => !shown.has(instanceId) && !isSameDataRoot(root, now))
    .map(([instanceId]) => instanceId)
    .sort();
}

/** Describes a data root for the host owner. */
export function describeDataRoot({ path, storageDriver, isRemapped }: DataRoot): string {
  if (path === '') return 'a folder that is not known any more';
  return `${path} (${storageDriver}, user namespaces ${isRemapped ? 'remapped' : 'not remapped'})`;
}

/** Describes which instances Docker does not show, and where they are. */
export function describeHidden(hidden: readonly string[], madeIn: DataRoot, now: DataRoot): string {
  const instances = hidden.length === 1 ? 'an instance that was' : `${hidden.length} instances that were`;
  if (isSamePlace(madeIn, now))
    return `Docker does not show ${instances} made in ${describeDataRoot(now)}, and reports that this is another data root now, as where its disk is not mounted`;
  return `Docker keeps its containers in ${describeDataRoot(now)} and does not show ${instances} made in ${describeDataRoot(madeIn)}`;
}

/** Tells the host owner what to do about instances that Docker does not show. */
export const UNDO_SWITCH =
  'their disks are not lost: undo what was changed ("userns-remap", "data-root" or "storage-driver" in /etc/docker/daemon.json, or a disk that is not mounted) and restart Docker; make such a change only while the host has no instances, see "Docker’s data root" in docs/host-owner.md';

/** Returns the user and group id on the host of the container's `id`. */
export function hostIds({ path, isRemapped }: DataRoot, id: number): { uid: number; gid: number } {
  const [, uid, gid] = (isRemapped && /\/(\d+)\.(\d+)\/?$/.exec(path)) || [];
  return { uid: Number(uid ?? 0) + id, gid: Number(gid ?? 0) + id };
}
