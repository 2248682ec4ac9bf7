/**
 * What an image requires of NVIDIA's driver, in the language of its `NVIDIA_REQUIRE_*` variables: alternatives are separated by spaces,
 * and of one alternative all conditions must hold, which are separated by commas: `cuda>=12.4 brand=tesla,driver>=470,driver<471`.
 */

/** What is known of a machine; null: nothing. */
export interface MachineDriver {
  driver_version: string | null;
  /** The newest CUDA version that the driver supports. */
  cuda_version: string | null;
  gpu_model: string | null;
}

/** Why a machine does not fit: the least version that would do, if one would. */
export interface Unmet {
  least: { of: 'cuda' | 'driver'; version: string } | null;
}

type Operator = '>=' | '<=' | '!=' | '>' | '<' | '=';
/** How a version is related to a required one; `finer` and `coarser`: they are alike as far as the shorter one goes. */
type Order = 'older' | 'same' | 'newer' | 'finer' | 'coarser';
/** Undefined: it is not known. */
type Answer = boolean | undefined;

interface Condition {
  word: string;
  operator: Operator;
  value: string;
}

/** The answers where the rules of NVIDIA's tools are the same; undefined where they can differ, so that nobody is warned falsely. */
const HOLDS: Readonly<Record<Operator, Readonly<Record<Order, Answer>>>> = {
  '>=': { older: false, same: true, newer: true, finer: true, coarser: undefined },
  '<': { older: true, same: false, newer: false, finer: false, coarser: undefined },
  '>': { older: false, same: false, newer: true, finer: undefined, coarser: undefined },
  '<=': { older: true, same: true, newer: false, finer: undefined, coarser: undefined },
  '=': { older: false, same: true, newer: false, finer: undefined, coarser: undefined },
  '!=': { older: true, same: false, newer: true, finer: undefined, coarser: undefined },
};

const CONDITION = /^([a-z]{1,16})(>=|<=|!=|>|<|=)([a-z0-9.]{1,32})$/i;
const VERSION = /^\d{1,6}(?:\.\d{1,6}){0,3}$/;

/** Names of GPUs by which their brand is known, with what NVIDIA's driver can call it. */
const BRANDS: readonly (readonly [RegExp, readonly string[]])[] = [
  [/\bGeForce\b/i, ['geforce', 'geforcertx']],
  [/\bQuadro\b/i, ['quadro', 'quadrortx']],
  [/\bTesla\b/i, ['tesla']],
  [/\bTITAN\b/i, ['titan', 'titanrtx']],
];

/** Which digest a machine last pulled under a name. The time is in milliseconds since 1970. */
export interface PulledDigest {
  machine_id: string;
  digest: string;
  told_at: number;
}

/**
 * Returns the digest by which a name is known for a deploy on a machine: the one that was pulled last. But where other machines have
 * pulled another one, what a single machine says counts only on itself, because it can lie.
 */
export function digestOn(machineId: string, told: readonly PulledDigest[], now: number): string | undefined {
  // What was told in the future dates from before the clock was set back.
  const known = told.filter(({ told_at }) => told_at <= now).sort((a, b) => b.told_at - a.told_at);
  const believed = known.find(({ machine_id, digest }, index) => {
    const isFirst = index === known.length - 1;
    const isAlone = known.every((other) => other.machine_id === machine_id || other.digest !== digest);
    return machine_id === machineId || !isAlone || isFirst;
  });
  return believed?.digest;
}

/**
 * Returns what an image requires, a line for each, by what machines have said of the same digest. None if one contradicts another: an
 * image does not change under its digest, so one of them lies.
 */
export function agreedRequirements(told: readonly string[]): string[] {
  const [said, ...others] = new Set(told);
  return said === undefined || others.length > 0 ? [] : said.split('\n').filter((requirement) => requirement !== '');
}

/**
 * Tells whether a machine has what an image requires, of which each entry must hold. `unknown` also where it uses words that are not
 * known here.
 */
export function driverFit(requirements: readonly string[], machine: MachineDriver): 'fits' | 'unknown' | Unmet {
  const answers = requirements.map((requirement) => fitOf(requirement, machine));
  const unmet = answers.find((answer) => typeof answer === 'object');
  return unmet ?? (answers.includes('unknown') ? 'unknown' : 'fits');
}

/** Says, for the person who deploys, what an image requires and the machine does not have. */
export function wordsOfUnmet({ least }: Unmet, { cuda_version, driver_version }: MachineDriver): string {
  const fails = 'the start will probably fail; choose another offer, or an image for another CUDA version';
  if (least?.of === 'cuda')
    return `the image requires CUDA ${least.version} or newer, but the driver of the machine supports only up to ${cuda_version}: ${fails}`;
  if (least)
    return `the image requires NVIDIA driver ${least.version} or newer, but the machine has ${driver_version}: ${fails}`;
  return `the image requires another NVIDIA driver than the ${driver_version ?? 'one'} of the machine: ${fails}`;
}

function fitOf(requirement: string, machine: MachineDriver): 'fits' | 'unknown' | Unmet {
  const alternatives = requirement.split(' ').filter((alternative) => alternative !== '');
  if (alternatives.length === 0) return 'fits';
  const answers = alternatives.map((alternative) => holds(alternative, machine));
  if (answers.includes(true)) return 'fits';
  if (answers.includes(undefined)) return 'unknown';
  return { least: leastOf('cuda', alternatives, machine) ?? leastOf('driver', alternatives, machine) };
}

function holds(alternative: string, machine: MachineDriver): Answer {
  const groups = groupsOf(alternative);
  return groups && allOf(groups.map((group) => anyOf(group.map((condition) => answerOf(condition, machine)))));
}

/** Returns the conditions of an alternative, those of one word with `=` together: one of them is enough. Undefined: one is not known. */
function groupsOf(alternative: string): Condition[][] | undefined {
  const groups = new Map<string, Condition[]>();
  for (const [index, text] of alternative.split(',').entries()) {
    if (text === '') continue;
    const [, word = '', operator, value = ''] = CONDITION.exec(text) ?? [];
    if (operator === undefined) return undefined;
    const condition = { word: word.toLowerCase(), operator: operator as Operator, value: value.toLowerCase() };
    const key = operator === '=' ? condition.word : String(index);
    groups.set(key, [...(groups.get(key) ?? []), condition]);
  }
  return [...groups.values()];
}

function answerOf({ word, operator, value }: Condition, machine: MachineDriver): Answer {
  if (word === 'brand') return brandIs(operator, value, machine.gpu_model);
  if (word !== 'cuda' && word !== 'driver') return undefined;
  const version = word === 'cuda' ? machine.cuda_version : machine.driver_version;
  if (version === null || !VERSION.test(version) || !VERSION.test(value)) return undefined;
  return HOLDS[operator][orderOf(version, value)];
}

function brandIs(operator: Operator, value: string, model: string | null): Answer {
  const brands = BRANDS.find(([name]) => model !== null && name.test(model))?.[1];
  if (!brands || (operator !== '=' && operator !== '!=')) return undefined;
  if (!brands.includes(value)) return operator === '!=';
  return brands.length === 1 ? operator === '=' : undefined;
}

function orderOf(version: string, required: string): Order {
  const [left, right] = [version, required].map((text) => text.split('.').map(Number)) as [number[], number[]];
  const both = Math.min(left.length, right.length);
  for (let i = 0; i < both; i++) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0);
    if (difference !== 0) return difference < 0 ? 'older' : 'newer';
  }
  if (left.slice(both).some((part) => part > 0)) return 'finer';
  return right.slice(both).some((part) => part > 0) ? 'coarser' : 'same';
}

/** Returns the least version of CUDA or of the driver with which one alternative would hold; null: that alone is not enough. */
function leastOf(of: 'cuda' | 'driver', alternatives: readonly string[], machine: MachineDriver): Unmet['least'] {
  const versions = alternatives.flatMap((alternative) => {
    const conditions = (groupsOf(alternative) ?? []).flat();
    const unmet = conditions.filter((condition) => answerOf(condition, machine) === false);
    const areBounds = unmet.every(({ word, operator }) => word === of && operator === '>=');
    return areBounds ? unmet.map(({ value }) => value) : [];
  });
  const [version] = versions.sort((a, b) => (orderOf(a, b) === 'older' || orderOf(a, b) === 'coarser' ? -1 : 1));
  return version === undefined ? null : { of, version };
}

function anyOf(answers: readonly Answer[]): Answer {
  if (answers.includes(true)) return true;
  return answers.includes(undefined) ? undefined : false;
}

function allOf(answers: readonly Answer[]): Answer {
  if (answers.includes(false)) return false;
  return answers.includes(undefined) ? undefined : true;
}
