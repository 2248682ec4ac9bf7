import type { Settlement } from '../../../domain/money/settlement.js';
import type { Cap } from '../../organizations/keys/cap-rows.js';
import { usedUpLimit } from './enforce-limits.js';
import type { LoadedAccount, SettledInstance } from './load-accounts.js';
import type { SpentDay } from './spent-days.js';

/** Returns what an instance has spent once a settlement is booked. */
export function spendAfter({ id, spend_micro }: SettledInstance, { bookings }: Settlement): number {
  const its = bookings.filter(({ instanceId }) => instanceId === id);
  return its.reduce((total, { chargedMicro }) => total + chargedMicro, spend_micro);
}

/** Returns the charges of a settlement that count for a cap, by the days of their use. */
export function chargesFor({ api_key_id }: Cap, { bookings }: Settlement): SpentDay[] {
  const days = bookings.flatMap((booking) => booking.days);
  return api_key_id === null ? days : days.filter(({ apiKeyId }) => apiKeyId === api_key_id);
}

/** Returns the stopped instances whose own limit is used up once a settlement is booked, and which it would destroy. */
export function endedByLimit({ instances }: LoadedAccount, settlement: Settlement, now: number): string[] {
  return instances
    .filter(({ isStopped, on_limit }) => isStopped && on_limit === 'destroy')
    .filter((one) => usedUpLimit({ ...one, spend_micro: spendAfter(one, settlement) }, now))
    .map(({ id }) => id);
}
