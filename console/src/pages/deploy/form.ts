import { limitFaults, NO_LIMITS, toLimits, withoutHalf, type TypedLimits } from '../../data/instances/limits.js';
import type { DeployRequest, Template } from '../../data/api/models.js';

export interface Variable {
  /** Tells rows apart that have no name yet. */
  row: number;
  key: string;
  value: string;
  secret: boolean;
  /** Whether its value was not kept, and nobody has typed it again. */
  isForgotten?: boolean;
}

/** What a person has chosen and typed. */
export interface DeployForm {
  label: string;
  /** In GB; undefined: nobody has typed it. */
  disk?: string;
  /** Empty: nobody can log in by SSH. */
  sshKey: string;
  /** Whether a person has chosen it, or that there is none. */
  isKeyChosen: boolean;
  /** New values of variables of templates: see {@link overrideOf}. Null: one was typed, and not kept. */
  overrides: Readonly<Record<string, string | null>>;
  /** Variables beside those of the template. */
  added: readonly Variable[];
  limits: TypedLimits;
}

/** A form with the size of its disk, typed or not. */
export type ShownForm = DeployForm & { disk: string };

export const LEAST_DISK = 10;
export const MOST_DISK = 20_000;
const USUAL_DISK = 20;

export const EMPTY_FORM: DeployForm = {
  label: '',
  sshKey: '',
  isKeyChosen: false,
  overrides: {},
  added: [],
  limits: NO_LIMITS,
};

/** Returns the size of the disk in GB: what was typed, else the usual one or what the machine has free. */
export function diskOf({ disk }: DeployForm, freeGb = USUAL_DISK): string {
  return disk ?? String(Math.max(LEAST_DISK, Math.min(USUAL_DISK, freeGb)));
}

/** A value is typed for one template: a secret of it must not become an open variable of another that has its name. */
const nameOf = ({ id }: Pick<Template, 'id'>, key: string) => `${id} ${key}`;

/** Returns the new value of a variable of a template; empty: its own value. */
export function overrideOf({ overrides }: DeployForm, template: Pick<Template, 'id'>, key: string): string {
  return overrides[nameOf(template, key)] ?? '';
}

/** Returns what of a form changes when a variable of a template is given a value. */
export function withOverride(form: DeployForm, template: Template, key: string, value: string): Partial<DeployForm> {
  return { overrides: { ...form.overrides, [nameOf(template, key)]: value } };
}

/**
 * Returns what may be kept of a form: no value of a variable that is secret, or that the template does not know. What is left out for
 * that is marked, so that nothing is deployed without it: see {@link faultsOf}.
 */
export function withoutSecrets(form: DeployForm, template: Pick<Template, 'id' | 'env'> | undefined): DeployForm {
  const open = template?.env.filter(({ secret }) => !secret).map(({ key }) => nameOf(template, key)) ?? [];
  return {
    ...form,
    overrides: Object.fromEntries(
      Object.entries(form.overrides).map(([name, value]) => [name, value === '' || open.includes(name) ? value : null]),
    ),
    added: form.added.map((variable) => (variable.secret ? withoutValue(variable) : variable)),
    limits: withoutHalf(form.limits),
  };
}

function withoutValue(variable: Variable): Variable {
  return variable.value === '' ? variable : { ...variable, value: '', isForgotten: true };
}

const TYPE_AGAIN = 'Type it again: secrets are not kept.';

/** Returns what is wrong with the new value of a variable of a template. */
export function overrideFault(form: DeployForm, template: Pick<Template, 'id'>, key: string): string | undefined {
  return form.overrides[nameOf(template, key)] === null ? TYPE_AGAIN : undefined;
}

/** Returns what is wrong with the value of a variable beside those of the template. */
export function valueFault({ isForgotten = false }: Variable): string | undefined {
  return isForgotten ? TYPE_AGAIN : undefined;
}

export interface Faults {
  disk?: string;
  added?: string;
  /** Of values that were not kept; each of them says so beside its field. */
  secrets?: string;
  limits: ReturnType<typeof limitFaults>;
}

/** Returns what is wrong with what was typed, and what to do. What else there is to say, the estimate says. */
export function faultsOf(form: ShownForm, template: Pick<Template, 'id' | 'env'> | undefined): Faults {
  const { disk, added, limits } = form;
  const gigabytes = Number(disk);
  const isDisk = /^\d{1,5}$/.test(disk.trim()) && gigabytes >= LEAST_DISK && gigabytes <= MOST_DISK;
  const unnamed = added.find(({ key, value }) => value !== '' && (key === '' || key.includes('=')));
  const overridden = template?.env.map(({ key }) => overrideFault(form, template, key)) ?? [];
  const secrets = [...overridden, ...added.map(valueFault)].find((fault) => fault !== undefined);
  return {
    ...(isDisk ? {} : { disk: `Give whole gigabytes, from ${LEAST_DISK} to ${MOST_DISK}.` }),
    ...(unnamed ? { added: 'Give each variable a name without "=".' } : {}),
    ...(secrets === undefined ? {} : { secrets }),
    limits: limitFaults(limits),
  };
}

export function isFaulty({ disk, added, secrets, limits }: Faults): boolean {
  return [disk, added, secrets].some((fault) => fault !== undefined) || Object.keys(limits).length > 0;
}

/** Returns the deploy as the API takes it; undefined: something is wrong. */
export function requestOf(form: ShownForm, offer_id: string, template: Template): DeployRequest | undefined {
  if (isFaulty(faultsOf(form, template))) return undefined;
  const changed = template.env.map(({ key, secret }) => ({ key, value: overrideOf(form, template, key), secret }));
  return {
    offer_id,
    template_id: template.id,
    disk_gb: Number(form.disk),
    label: form.label.trim() === '' ? null : form.label.trim(),
    ssh_key_id: form.sshKey === '' ? null : form.sshKey,
    ...toLimits(form.limits),
    env_overrides: [
      ...changed.filter(({ value }) => value !== ''),
      ...form.added
        .filter(({ key }) => key !== '')
        .map(({ key, value, secret }) => ({
          key,
          value,
          secret,
        })),
    ],
  };
}
