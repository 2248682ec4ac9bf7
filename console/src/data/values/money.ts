/** Amounts of money are integers in micro-dollars. Nothing here rounds one. */

const MICRO = 1_000_000;
/** Before each group of three digits. A format of the browser would load its rules first, which takes longer than a page of sums. */
const THOUSANDS = /\B(?=(?:\d{3})+$)/g;

/** Returns an amount with every digit that it has, at least two after the point: `$1.2034`, `−$0.50`. */
export function exactMoney(micro: number): string {
  const amount = Math.abs(micro);
  const dollars = String(Math.floor(amount / MICRO)).replace(THOUSANDS, ',');
  const digits = String(amount % MICRO).padStart(6, '0');
  const cents = digits.slice(0, 2) + digits.slice(2).replace(/0+$/, '');
  return `${micro < 0 ? '−' : ''}$${dollars}.${cents}`;
}

/** Returns a price per hour: `$1.20/h`. */
export function hourlyMoney(micro: number): string {
  return `${exactMoney(micro)}/h`;
}

/** Returns what a time costs at a rate per hour, rounded as the control plane rounds it: down, to whole micro-dollars. */
export function priceOf(perHourMicro: number, ms: number): number {
  return Number((BigInt(perHourMicro) * BigInt(ms)) / 3_600_000n);
}

/**
 * Reads what a person has typed, such as `5`, `$1,000` or `0.000001`, in micro-dollars; undefined: it is no amount, or has more than six
 * digits after the point. A comma stands only before three digits: who writes `1,5` means no fifteen dollars.
 */
export function parseMoney(text: string): number | undefined {
  const match = /^\$?(\d{1,9}|\d{1,3}(?:,\d{3}){1,2})(?:\.(\d{1,6}))?$/.exec(text.trim());
  if (!match) return undefined;
  const [, dollars = '', digits = ''] = match;
  return Number(dollars.replaceAll(',', '')) * MICRO + Number(digits.padEnd(6, '0'));
}

/** Returns an amount as {@link parseMoney} reads it. */
export function typedMoney(micro: number): string {
  return exactMoney(micro).replaceAll(',', '').replace('$', '');
}
