import { NO_CAP_TEXTS, capsIn, type CapTexts } from '../../parts/forms/spend-caps.js';
import type { NewApiKey } from './queries.js';

const DAY_MS = 86_400_000;

/** What stands in the form of a new API key. */
export interface KeyDraft {
  name: string;
  kind: 'personal' | 'team';
  isReadOnly: boolean;
  /** One a line. */
  addresses: string;
  /** In how many days it ends; empty: never. */
  days: '' | '1' | '7' | '30' | '90' | '365';
  caps: CapTexts;
}

export const NEW_KEY: KeyDraft = {
  name: '',
  kind: 'personal',
  isReadOnly: false,
  addresses: '',
  days: '',
  caps: NO_CAP_TEXTS,
};

export function keyFaultsOf(draft: KeyDraft): { name?: string; caps?: string } {
  return {
    ...(draft.name.trim() === '' ? { name: 'Give the key a name.' } : {}),
    ...(capsIn(draft.caps) === undefined ? { caps: 'a cap is no amount' } : {}),
  };
}

/** Returns what to send. A restriction that was not made is left out. `now`: milliseconds since 1970. */
export function keyBodyOf({ name, kind, isReadOnly, addresses, days, caps }: KeyDraft, now: number): NewApiKey {
  const allowed = addresses.split(/[\s,]+/).filter((address) => address !== '');
  const spend = capsIn(caps);
  const isCapped = spend !== undefined && Object.values(spend).some((cap) => cap !== null);
  return {
    name: name.trim(),
    kind,
    read_only: isReadOnly,
    ...(allowed.length > 0 ? { allowed_addresses: allowed } : {}),
    ...(days === '' ? {} : { expires_at: new Date(now + Number(days) * DAY_MS).toISOString() }),
    ...(isCapped ? { spend_caps: spend } : {}),
  };
}
