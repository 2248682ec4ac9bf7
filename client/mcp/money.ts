const MICRO = 1_000_000;

/** Returns an amount in micro-dollars as dollars, such as `$1.20` or `-$0.000001`. Nothing is rounded. */
export function dollars(micro: number): string {
  const [whole, part] = [Math.floor(Math.abs(micro) / MICRO), Math.abs(micro) % MICRO];
  const decimals = String(part)
    .padStart(6, '0')
    .replace(/0{1,4}$/, '');
  return `${micro < 0 ? '-' : ''}$${whole}.${decimals}`;
}

/** The API looks no further ahead for the end of a balance. */
const CENTURY_HOURS = 100 * 365 * 24;

/** What an organization has, and how long that lasts. */
export interface Balance {
  balance_micro: number;
  /** ISO 8601; null: nothing is charged yet, or it lasts for a century. */
  lasts_until: string | null;
  /** Absent: the control plane is of an earlier release. */
  charged_per_hour_micro?: number | null | undefined;
}

/** Says what a balance covers. */
export function coverage({ balance_micro, lasts_until, charged_per_hour_micro }: Balance): string {
  const until =
    lasts_until === null ? unended(balance_micro, charged_per_hour_micro) : `which lasts until ${lasts_until}`;
  return `The balance is ${dollars(balance_micro)}, ${until}.`;
}

/** Says how long a balance lasts whose end is not known: no time is metered yet, or it lasts for a century. */
function unended(balanceMicro: number, chargedMicro: number | null | undefined): string {
  if (!chargedMicro) return 'and nothing uses it up';
  const hours = balanceMicro / chargedMicro;
  if (hours <= 0) return 'which is used up';
  if (hours > CENTURY_HOURS) return 'which lasts more than 100 years';
  return `which lasts ${Math.floor(hours * 60)} minutes at what is charged now`;
}
