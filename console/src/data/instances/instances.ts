import type { Instance } from '../api/models.js';

/** What people call an instance: its label, or the name of its template. */
export function nameOf({ label, template }: Pick<Instance, 'label' | 'template'>): string {
  return label ?? template.name;
}

/** What the disk of an instance costs per hour while it is stopped, in micro-dollars. */
export function diskPrice({ disk_gb, storage_price_per_gb_hour_micro }: DiskTerms): number {
  return disk_gb * storage_price_per_gb_hour_micro;
}

type DiskTerms = Pick<Instance, 'disk_gb' | 'storage_price_per_gb_hour_micro'>;

/** What an instance costs per hour as it is, in micro-dollars: GPU time while it runs, its disk while it is stopped, otherwise nothing. */
export function costNow(instance: DiskTerms & Pick<Instance, 'status' | 'price_per_hour_micro'>): number {
  if (instance.status === 'running') return instance.price_per_hour_micro;
  return instance.status === 'stopped' ? diskPrice(instance) : 0;
}

/** Which instances one looks at first: those that failed, those under way, running ones, stopped ones, and what is gone. */
const NEED: Readonly<Record<Instance['status'], Need>> = {
  error: 'failed',
  creating: 'under way',
  starting: 'under way',
  stopping: 'under way',
  destroying: 'under way',
  running: 'running',
  stopped: 'stopped',
  destroyed: 'destroyed',
} as const;
export const NEEDS = ['failed', 'under way', 'running', 'stopped', 'destroyed'] as const;
export type Need = (typeof NEEDS)[number];

export function needOf({ status }: Pick<Instance, 'status'>): Need {
  return NEED[status];
}

/** Tells whether an instance is on its way to another status, so that its newest event is of interest. */
export function isUnderWay(instance: Pick<Instance, 'status'>): boolean {
  return needOf(instance) === 'under way';
}

type Address = Pick<Instance, 'ssh_host' | 'ssh_port' | 'ssh_user'>;

/** Returns the command that leads to an instance; undefined: it has no address, or one that no shell should be given. */
export function sshCommand({ ssh_host, ssh_port, ssh_user }: Address): string | undefined {
  if (ssh_host === null || ssh_port === null) return undefined;
  if (!/^[\w.:-]+$/.test(ssh_host) || !/^\w[\w.-]*$/.test(ssh_user)) return undefined;
  return `ssh -p ${ssh_port} ${ssh_user}@${ssh_host}`;
}

/** Returns the link by which VS Code opens an instance over SSH. */
export function vsCodeLink(address: Address): string | undefined {
  const { ssh_host, ssh_port, ssh_user } = address;
  if (sshCommand(address) === undefined) return undefined;
  const home = ssh_user === 'root' ? '/root' : `/home/${ssh_user}`;
  return `vscode://vscode-remote/ssh-remote+${ssh_user}@${ssh_host}:${ssh_port}${home}`;
}

/** Returns an address that a host has reported if a browser may open it; a host could report any. */
export function webAddress(url: string | null): string | undefined {
  if (url === null || !URL.canParse(url)) return undefined;
  return /^https?:$/.test(new URL(url).protocol) ? url : undefined;
}

/** What becomes of the GPUs of a stopped instance: they are kept, until a time if there is one, they are being released, or they are gone. */
export type HeldGpus = { state: 'kept'; until: string | null } | { state: 'releasing' | 'released' | 'unreleasable' };

/** Returns what becomes of the GPUs of an instance; undefined: it is not stopped. */
export function heldGpus(instance: ReleaseTerms): HeldGpus | undefined {
  const { status, gpus_released, gpu_release, releases_gpus_at } = instance;
  if (status !== 'stopped') return undefined;
  if (gpus_released) return { state: 'released' };
  if (gpu_release === 'pending') return { state: 'releasing' };
  return gpu_release === 'unsupported' ? { state: 'unreleasable' } : { state: 'kept', until: releases_gpus_at };
}

type ReleaseTerms = Pick<Instance, 'status' | 'gpus_released' | 'gpu_release' | 'releases_gpus_at'>;

/** Returns a number of hours in words: `1 hour`, `24 hours`. */
export function inHours(hours: number): string {
  return hours === 1 ? '1 hour' : `${hours} hours`;
}
