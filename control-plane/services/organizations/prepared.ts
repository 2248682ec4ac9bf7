import type { Actor } from '../../domain/act.js';
import type { Row } from '../../store/schema.js';
import type { Tx } from '../../store/store.js';
import { revokeKeysOf } from './keys/api-keys.js';
import { withdrawInvitesBy } from './ended-invites.js';

/**
 * Ends what a user has prepared that lets somebody in without a session of the user: API keys, also team keys, and invitations, in all
 * organizations. Returns the keys.
 */
export function endPreparedBy(tx: Tx, by: Actor, userId: string): Row<'api_keys'>[] {
  withdrawInvitesBy(tx, by, userId);
  return revokeKeysOf(tx, by, userId);
}
