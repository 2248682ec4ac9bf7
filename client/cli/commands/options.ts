import { InvalidArgumentError, type Command } from 'commander';
import { microOf } from '../output/money.js';
import { durationOf } from '../output/times.js';

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

/** Reads a duration or `off`, in whole minutes; null: off. */
export function minutes(text: string): number | null {
  if (text === 'off') return null;
  const ms = durationOf(text);
  if (ms % 60_000 !== 0) throw new InvalidArgumentError('Give whole minutes, like 30m.');
  return ms / 60_000;
}

/** Reads dollars or `off`, as micro-dollars; null: off. */
export const moneyOrOff = (text: string): number | null => (text === 'off' ? null : microOf(text));

/** Reads a duration or `off`, in milliseconds; null: off. */
export const durationOrOff = (text: string): number | null => (text === 'off' ? null : durationOf(text));

export const INSTANCE = ['<instance>', 'an id, its beginning, or a label'] as const;

export const withYes = (command: Command): Command => command.option('--yes', 'do not ask');
