import { InvalidArgumentError, type Command } from 'commander';
import { microOf } from '../output/money.js';
import { durationOf } from '../output/times.js';

const MINUTE_MS = 60_000;

/** Reads a whole number from `least` to `most`. */
export const whole =
  (least: number, most: number) =>
  (text: string): number => {
    const number = Number(text);
    if (/^\d{1,15}$/.test(text) && number >= least && number <= most) return number;
    throw new InvalidArgumentError(`Give a whole number from ${least} to ${most}.`);
  };

/** Reads dollars, as micro-dollars. */
export const money = (text: string): number => microOf(text);

/** Reads a duration, in milliseconds. */
export const duration = (text: string): number => durationOf(text);

/** Reads an option that can be given several times. */
export const several = (text: string, earlier: string[] = []): string[] => [...earlier, text];

/** What takes a limit away. Commander would turn null into an empty text. */
export type OrOff = number | 'off';

/** Reads a duration, in whole minutes. */
export function minutes(text: string): number {
  const ms = durationOf(text);
  if (ms % MINUTE_MS !== 0) throw new InvalidArgumentError('Give whole minutes, like 30m.');
  return ms / MINUTE_MS;
}

/** Reads a duration or `off`, in whole minutes. */
export const minutesOrOff = (text: string): OrOff => (text === 'off' ? text : minutes(text));

/** Reads dollars or `off`, as micro-dollars. */
export const moneyOrOff = (text: string): OrOff => (text === 'off' ? text : microOf(text));

/** Reads a duration or `off`, in milliseconds. */
export const durationOrOff = (text: string): OrOff => (text === 'off' ? text : durationOf(text));

/** Returns a limit as the API has it; null: none. */
export const limitOf = (value: OrOff): number | null => (value === 'off' ? null : value);

export const INSTANCE = ['<instance>', 'an id, its beginning, or a label'] as const;

export const withYes = (command: Command): Command => command.option('--yes', 'do not ask');
