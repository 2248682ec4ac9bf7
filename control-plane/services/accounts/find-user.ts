import type { Row } from '../../store/schema.js';
import { compileOnce, query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';

/** Returns the user who signs in with this e-mail address. */
export function findUserByEmail(tx: Tx, email: string): Row<'users'> | undefined {
  return tx.get(byEmail({ email }));
}

const byEmail = compileOnce(({ email }: { email: string }) =>
  query.selectFrom('users').selectAll().where('email', '=', email),
);
