/** Where a Docker Engine keeps its containers. It shows those of its present data root, and none of any other. */
export interface DataRoot {
  /** Its folder. Where user namespaces are remapped, one of the remapped ids: `/var/lib/docker/100000.100000`. */
  path: string;
  storageDriver: string;
  isRemapped: boolean;
  /** Docker 23 and later keep it in the folder: it is another one where the disk of the folder is not mounted. */
  engineId: string;
}

/** Of an instance whose note cannot be read: the same as no other. */
export const UNKNOWN_DATA_ROOT: DataRoot = { path: '', storageDriver: '', isRemapped: false, engineId: '' };

export function isSameDataRoot(one: DataRoot, other: DataRoot): boolean {
  return isSamePlace(one, other) && one.engineId === other.engineId;
}

/** The same, whatever Docker calls itself: an upgrade may give it another id. */
export function isSamePlace(one: DataRoot, other: DataRoot): boolean {
  return one.path === other.path && one.storageDriver === other.storageDriver && one.isRemapped === other.isRemapped;
}

/**
 * Returns the instances whose containers are in another data root than the present one, sorted: Docker does not show them, and
 * their disks are there all the same. What it does not show of the present one is gone; what it shows has moved along.
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

/** Says what a host's owner has to know of a data root. */
export function describeDataRoot({ path, storageDriver, isRemapped }: DataRoot): string {
  if (path === '') return 'a folder that is not known any more';
  return `${path} (${storageDriver}, user namespaces ${isRemapped ? 'remapped' : 'not remapped'})`;
}

/** Says which instances Docker does not show and where they are. */
export function describeHidden(hidden: readonly string[], madeIn: DataRoot, now: DataRoot): string {
  const instances = hidden.length === 1 ? 'an instance that was' : `${hidden.length} instances that were`;
  if (isSamePlace(madeIn, now))
    return `Docker does not show ${instances} made in ${describeDataRoot(now)}, and says that this is another data root now, as where its disk is not mounted`;
  return `Docker keeps its containers in ${describeDataRoot(now)} and does not show ${instances} made in ${describeDataRoot(madeIn)}`;
}

/** What to do about instances that Docker does not show. */
export const UNDO_SWITCH =
  'their disks are not lost: undo what was changed ("userns-remap", "data-root" or "storage-driver" in /etc/docker/daemon.json, or a disk that is not mounted) and restart Docker; such a change is made while a host has no instances, see "Docker’s data root" in docs/host-owner.md';

/** Returns the ids of the host that `id` stands for in files of a container. */
export function hostIds({ path, isRemapped }: DataRoot, id: number): { uid: number; gid: number } {
  const [, uid, gid] = (isRemapped && /\/(\d+)\.(\d+)\/?$/.exec(path)) || [];
  return { uid: Number(uid ?? 0) + id, gid: Number(gid ?? 0) + id };
}
