import { usageError } from '../errors/cli-error.js';

const MICRO = 1_000_000;

/** Returns micro-dollars as dollars, exactly: with two decimals, or with as many as the amount has. */
export function dollars(micro: number): string {
  const amount = Math.abs(micro);
  const decimals = String(amount % MICRO)
    .padStart(6, '0')
    .replace(/0{1,4}$/, '');
  return `${micro < 0 ? '-' : ''}$${Math.floor(amount / MICRO)}.${decimals}`;
}

/** Returns dollars (`5`, `0.25`, `$1.50`) as micro-dollars. Throws a usage error for anything else, and for fractions of a micro-dollar. */
export function microOf(text: string): number {
  const [, minus = '', whole = '', decimals = ''] = /^(-?)\$?(\d{1,9})(?:\.(\d{1,6}))?$/.exec(text.trim()) ?? [];
  if (whole === '')
    throw usageError(`"${text}" is not an amount in dollars`, 'Give it like 5 or 0.25, with at most 6 decimals.');
  const micro = Number(whole) * MICRO + Number(decimals.padEnd(6, '0'));
  return minus && micro !== 0 ? -micro : micro;
}
