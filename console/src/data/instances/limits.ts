import type { Instance } from '../api/models.js';
import { parseMoney, typedMoney } from '../values/money.js';

/** The limits of an instance as a person types them; empty: no limit. */
export interface TypedLimits {
  /** A local time, as an input of the type datetime-local has it; {@link HALF_TYPED}: a part of one. */
  stopAt: string;
  maxCharge: string;
  idleMinutes: string;
  onLimit: 'stop' | 'destroy';
}

export type LimitFaults = Partial<Record<keyof TypedLimits, string>>;
type Limits = Pick<Instance, 'stop_at' | 'max_charge_micro' | 'idle_stop_minutes' | 'on_limit'>;

export const NO_LIMITS: TypedLimits = { stopAt: '', maxCharge: '', idleMinutes: '', onLimit: 'stop' };
/** What stands for a time of which only a part is typed: its input gives no value then, as if nothing were typed. */
export const HALF_TYPED = 'half typed';
const MOST_IDLE_MINUTES = 10_080;

/** Returns the limits of an instance as a person would have typed them. */
export function fromLimits({ stop_at, max_charge_micro, idle_stop_minutes, on_limit }: Limits): TypedLimits {
  return {
    stopAt: stop_at === null ? '' : localTime(stop_at),
    maxCharge: max_charge_micro === null ? '' : typedMoney(max_charge_micro),
    idleMinutes: idle_stop_minutes === null ? '' : String(idle_stop_minutes),
    onLimit: on_limit ?? 'stop',
  };
}

/** Returns what is wrong with what was typed, and what to do, by its field. */
export function limitFaults({ stopAt, maxCharge, idleMinutes }: TypedLimits): LimitFaults {
  return {
    ...(stopAt !== '' && Number.isNaN(Date.parse(stopAt)) && { stopAt: 'Give a day and a time.' }),
    ...(maxCharge !== '' && !parseMoney(maxCharge) && { maxCharge: 'Give an amount above zero, such as 12.50.' }),
    ...(idleMinutes !== '' && !isMinutes(idleMinutes) && { idleMinutes: 'Give whole minutes, from 1 to 10080.' }),
  };
}

/** Returns the limits without a time that is half typed: once its input is gone, nothing can show it again. */
export function withoutHalf(typed: TypedLimits): TypedLimits {
  return typed.stopAt === HALF_TYPED ? { ...typed, stopAt: '' } : typed;
}

/** Returns the limits that somebody has typed anew, as the API takes them. A time that was not touched is not read again: it can be past, or one of two with the same local time. */
export function changedLimits(before: TypedLimits, typed: TypedLimits): Partial<Limits> {
  const { stop_at, max_charge_micro, idle_stop_minutes, on_limit } = toLimits(typed);
  return {
    ...(typed.stopAt !== before.stopAt && { stop_at }),
    ...(typed.maxCharge !== before.maxCharge && { max_charge_micro }),
    ...(typed.idleMinutes !== before.idleMinutes && { idle_stop_minutes }),
    ...(typed.onLimit !== before.onLimit && { on_limit }),
  };
}

/** Returns the limits as the API takes them. */
export function toLimits({ stopAt, maxCharge, idleMinutes, onLimit }: TypedLimits): Limits {
  return {
    stop_at: stopAt === '' ? null : new Date(stopAt).toISOString(),
    max_charge_micro: maxCharge === '' ? null : (parseMoney(maxCharge) ?? null),
    idle_stop_minutes: idleMinutes === '' ? null : Number(idleMinutes),
    on_limit: onLimit === 'destroy' ? 'destroy' : null,
  };
}

function isMinutes(text: string): boolean {
  return /^\d{1,5}$/.test(text.trim()) && Number(text) >= 1 && Number(text) <= MOST_IDLE_MINUTES;
}

/** Returns a time in the time zone of the reader, as an input of the type datetime-local has it, with its seconds where it has some. */
function localTime(at: string): string {
  const date = new Date(at);
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString();
  return date.getTime() % 60_000 === 0 ? local.slice(0, 16) : local.slice(0, 23);
}
