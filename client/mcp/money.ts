const MICRO = 1_000_000;

/** Returns an amount in micro-dollars as dollars, such as `$1.20` or `-$0.000001`. Nothing is rounded. */
export function dollars(micro: number): string {
  const [whole, part] = [Math.floor(Math.abs(micro) / MICRO), Math.abs(micro) % MICRO];
  const decimals = String(part)
    .padStart(6, '0')
    .replace(/0{1,4}$/, '');
  return `${micro < 0 ? '-' : ''}$${whole}.${decimals}`;
}

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
  const endless = charged_per_hour_micro ? 'which lasts more than 100 years' : 'and nothing uses it up';
  const until = lasts_until === null ? endless : `which lasts until ${lasts_until}`;
  return `The balance is ${dollars(balance_micro)}, ${until}.`;
}
