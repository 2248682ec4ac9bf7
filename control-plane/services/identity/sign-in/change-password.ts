import { userActor } from '../../../domain/act.js';
import type { AccountCaller } from '../../../domain/caller.js';
import { Refusal } from '../../../domain/refusal.js';
import { query } from '../../../store/sql.js';
import type { Platform } from '../../system/platform.js';
import type { HasSessionLinks } from '../sessions/session-links.js';
import { endFactorRequestsOf } from '../factors/factor-requests.js';
import { checkProofWithFactor } from '../sessions/fresh-proof.js';
import { endLinks } from '../links/link-requests.js';
import { checkPasswordOn } from '../companies/password-off.js';
import { tellChanged } from './password-reset.js';
import { endPreparedBy } from '../../organizations/prepared.js';
import { endSessionsBut } from '../sessions/sessions.js';
import { checkUnchanged, passwordOf } from './sign-in.js';
import { describeUser } from '../users/users.js';

/**
 * Sets a new password and ends every other session of the user, all links to a new password, and what was begun with second factors; with
 * `revoke_api_keys` also every API key and every invitation that the user has made, in any organization. Refuses with INVALID_CREDENTIALS
 * and PASSWORD_OFF, and a user with a second factor with PROOF_REQUIRED.
 */
export async function changePassword(
  platform: Platform & HasSessionLinks,
  caller: AccountCaller,
  request: { current_password: string; new_password: string; revoke_api_keys?: boolean },
): Promise<void> {
  const { store, passwords } = platform;
  const { user } = describeUser(platform, caller.userId);
  if (!(await passwords.verify(request.current_password, passwordOf(user)))) {
    throw new Refusal('INVALID_CREDENTIALS', 'the current password is wrong');
  }
  const password_hash = await passwords.hash(request.new_password);
  store.transact((tx) => {
    checkUnchanged(tx, user);
    checkPasswordOn(tx, user);
    checkProofWithFactor(tx, caller);
    tx.run(query.updateTable('users').set({ password_hash }).where('id', '=', user.id));
    endSessionsBut(platform, tx, caller);
    endFactorRequestsOf(tx, user.id);
    endLinks(tx, 'password_reset', user.email);
    if (request.revoke_api_keys === true) endPreparedBy(tx, userActor(user.id, user.email), user.id);
    tellChanged(platform, tx, user);
  });
}
