import { limitFaults, NO_LIMITS, toLimits, type TypedLimits } from '../../data/limits.js';
import type { DeployRequest, Template } from '../../data/models.js';

export interface Variable {
  /** Tells rows apart that have no name yet. */
  row: number;
  key: string;
  value: string;
  secret: boolean;
}

/** What a person has chosen and typed. */
export interface DeployForm {
  label: string;
  disk: string;
  /** Empty: nobody can log in by SSH. */
  sshKey: string;
  /** Whether a person has chosen it, or that there is none. */
  isKeyChosen: boolean;
  /** New values of variables of the template, by their names; empty: its own value. */
  overrides: Readonly<Record<string, string>>;
  /** Variables beside those of the template. */
  added: readonly Variable[];
  limits: TypedLimits;
}

export const LEAST_DISK = 10;
export const MOST_DISK = 20_000;
const USUAL_DISK = 20;

/** Returns the form of a deploy on a machine with so much disk free, in GB. */
export function emptyForm(freeDisk: number): DeployForm {
  const disk = Math.max(LEAST_DISK, Math.min(USUAL_DISK, freeDisk));
  return {
    ...{ label: '', disk: String(disk), sshKey: '', isKeyChosen: false, overrides: {}, added: [], limits: NO_LIMITS },
  };
}

export interface Faults {
  disk?: string;
  added?: string;
  limits: ReturnType<typeof limitFaults>;
}

/** Returns what is wrong with what was typed, and what to do. What else there is to say, the estimate says. */
export function faultsOf({ disk, added, limits }: DeployForm): Faults {
  const gigabytes = Number(disk);
  const isDisk = /^\d{1,5}$/.test(disk.trim()) && gigabytes >= LEAST_DISK && gigabytes <= MOST_DISK;
  const unnamed = added.find(({ key, value }) => value !== '' && (key === '' || key.includes('=')));
  return {
    ...(isDisk ? {} : { disk: `Give whole gigabytes, from ${LEAST_DISK} to ${MOST_DISK}.` }),
    ...(unnamed ? { added: 'Give each variable a name without "=".' } : {}),
    limits: limitFaults(limits),
  };
}

export function isFaulty({ disk, added, limits }: Faults): boolean {
  return disk !== undefined || added !== undefined || Object.keys(limits).length > 0;
}

/** Returns the deploy as the API takes it; undefined: something is missing or wrong. */
export function requestOf(
  form: DeployForm,
  offer_id: string,
  template: Template | undefined,
): DeployRequest | undefined {
  if (!template || isFaulty(faultsOf(form))) return undefined;
  const secrets = new Map(template.env.map(({ key, secret }) => [key, secret]));
  const changed = Object.entries(form.overrides).filter(([key, value]) => secrets.has(key) && value !== '');
  return {
    ...{ offer_id, template_id: template.id, disk_gb: Number(form.disk) },
    label: form.label.trim() === '' ? null : form.label.trim(),
    ssh_key_id: form.sshKey === '' ? null : form.sshKey,
    ...toLimits(form.limits),
    env_overrides: [
      ...changed.map(([key, value]) => ({ key, value, secret: secrets.get(key) ?? false })),
      ...form.added.filter(({ key }) => key !== '').map(({ key, value, secret }) => ({ key, value, secret })),
    ],
  };
}
