import { actorOf } from '../../../domain/act.js';
import type { SessionCaller } from '../../../domain/caller.js';
import { Refusal } from '../../../domain/refusal.js';
import { query } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { recordAct } from '../../system/acts.js';
import type { Core } from '../../system/platform.js';
import { checkFreshProof } from '../sessions/fresh-proof.js';
import { getOrganization } from '../../organizations/organizations.js';

/** Returns since when the organization of the caller demands a second factor of its members; null: it does not. */
export function requirementOf(core: Core, { organizationId }: { organizationId: string }): number | null {
  return core.store.transact((tx) => getOrganization(tx, organizationId).second_factor_since);
}

/**
 * Demands, for an admin, a second factor of all members, or ends that. The admin must have given one in this session. API keys go on.
 * Refuses with SECOND_FACTOR_REQUIRED and PROOF_REQUIRED.
 */
export function setRequirement(core: Core, caller: SessionCaller, isRequired: boolean): number | null {
  return core.store.transact((tx) => {
    const { id, second_factor_since } = getOrganization(tx, caller.organizationId);
    if ((second_factor_since !== null) === isRequired) return second_factor_since;
    if (isRequired) checkHasGiven(tx, caller);
    checkFreshProof(tx, caller);
    const since = isRequired ? tx.now : null;
    tx.run(query.updateTable('organizations').set({ second_factor_since: since }).where('id', '=', id));
    recordAct(tx, id, actorOf(caller), 'organization.second_factor', `orgs/${id}`);
    return since;
  });
}

function checkHasGiven(tx: Tx, { sessionId }: SessionCaller): void {
  const session = tx.get(query.selectFrom('sessions').select('factor_at').where('id', '=', sessionId));
  if (session?.factor_at !== null && session !== undefined) return;
  throw new Refusal(
    'SECOND_FACTOR_REQUIRED',
    'you would lock yourself out: give your second factor in this session first; if you have none, add one before',
  );
}
