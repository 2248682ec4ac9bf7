import { anOperator } from '../../../domain/act.js';
import type { Operator } from '../../../domain/caller.js';
import { OPERATORS } from '../../../domain/event.js';
import { Refusal } from '../../../domain/refusal.js';
import { query, sql, updateRows } from '../../../store/sql.js';
import { recordEvent } from '../../events/record.js';
import { recordAct } from '../../system/acts.js';
import { recordAudit } from '../../system/audit.js';
import type { Core } from '../../system/platform.js';
import { endPreparedBy } from '../../organizations/prepared.js';
import { getUser, membershipsOf, type UserDetails } from '../users/users.js';

/**
 * Makes a user an operator, or an operator an ordinary user, for an operator. It holds from the next request of each of their sessions
 * on. Does nothing if it is so already. Refuses with USER_NOT_FOUND, and with LAST_OPERATOR to leave no operator.
 */
export function setOperator(
  core: Core,
  operator: Operator,
  id: string,
  isOperator: boolean,
  reason: string,
): UserDetails {
  return core.store.transact((tx) => {
    const user = getUser(tx, id);
    if ((user.is_operator === 1) === isOperator) return user;
    const operators = query.selectFrom('users').select('id').where('is_operator', '=', sql.lit(1));
    if (!isOperator && tx.all(operators.limit(2)).length < 2)
      throw new Refusal('LAST_OPERATOR', 'this is the last operator; make another user an operator first');
    const is_operator = isOperator ? (1 as const) : (0 as const);
    tx.run(updateRows('users', { is_operator }, { id }));
    const data = { user_id: id, by_user_id: operator.userId, reason };
    recordEvent(tx, OPERATORS, isOperator ? 'operator.granted' : 'operator.withdrawn', `users/${id}`, data);
    recordAudit(tx, operator, isOperator ? 'operator.grant' : 'operator.withdraw', id, { email: user.email, reason });
    return { ...user, is_operator };
  });
}

/**
 * Ends every session of a user for an operator, and with `revoke_api_keys` revokes the active API keys that the user has created, also team
 * keys, and withdraws the invitations that the user has made. Tells each organization of the user. Returns how many there were. Refuses
 * with USER_NOT_FOUND.
 */
export function endSessions(
  core: Core,
  operator: Operator,
  id: string,
  { reason, revoke_api_keys }: { reason: string; revoke_api_keys: boolean },
): { sessions: number; api_keys: number } {
  return core.store.transact((tx) => {
    getUser(tx, id);
    const by = anOperator(reason);
    const sessions = tx.run(query.deleteFrom('sessions').where('user_id', '=', id));
    const keys = revoke_api_keys ? endPreparedBy(tx, by, id) : [];
    for (const { organization_id } of membershipsOf(tx, id)) {
      const api_keys_revoked = keys.filter((key) => key.organization_id === organization_id).length;
      const data = { user_id: id, reason, api_keys_revoked };
      recordEvent(tx, organization_id, 'member.sessions_ended', `members/${id}`, data);
      recordAct(tx, organization_id, by, 'member.end_sessions', `members/${id}`);
    }
    const ended = { sessions, api_keys: keys.length };
    recordAudit(tx, operator, 'user.end_sessions', id, { reason, ...ended });
    return ended;
  });
}
