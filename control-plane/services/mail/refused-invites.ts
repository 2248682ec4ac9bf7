import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';

/** Tells whether an address gets no invitations by mail. */
export function refusesInvites(tx: Tx, address: string): boolean {
  const refused = query.selectFrom('refused_invite_mails').select('since').where('address', '=', address.toLowerCase());
  return tx.get(refused) !== undefined;
}

/** Ends invitations by mail to an address, or lets them begin again. The invitations themselves are made as before. */
export function setInviteMails(tx: Tx, given: string, isOn: boolean): void {
  const address = given.toLowerCase();
  if (isOn) tx.run(query.deleteFrom('refused_invite_mails').where('address', '=', address));
  else
    tx.run(
      query
        .insertInto('refused_invite_mails')
        .values({ address, since: tx.now })
        .onConflict((conflict) => conflict.column('address').doNothing()),
    );
}
