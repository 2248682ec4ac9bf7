import type { Role } from '../../../domain/caller.js';
import { Refusal } from '../../../domain/refusal.js';
import type { Row } from '../../../store/schema.js';
import { compileOnce, query, rowById } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import type { Core } from '../../system/platform.js';
import { REMOVED } from '../../organizations/removed-users.js';

export type UserDetails = Pick<Row<'users'>, 'id' | 'email' | 'name' | 'is_operator' | 'created_at'>;

/** An organization with the role that a user has in it. */
export type OwnOrganization = Row<'organizations'> & { role: Role };

export interface NewUser {
  email: string;
  name: string;
  passwordHash: string;
  isOperator: boolean;
  email_verified_at: number | null;
}

export function createUser(tx: Tx, id: string, user: NewUser): Row<'users'> {
  const taken = tx.get(query.selectFrom('users').select('id').where('email', '=', user.email));
  if (taken) throw new Refusal('EMAIL_TAKEN', 'an account with this e-mail address exists; sign in instead');
  const row: Row<'users'> = {
    id,
    email: user.email,
    name: user.name,
    password_hash: user.passwordHash,
    is_operator: user.isOperator ? 1 : 0,
    created_at: tx.now,
    email_verified_at: user.email_verified_at,
  };
  tx.run(query.insertInto('users').values(row));
  return row;
}

/** Returns a user who has an account. Refuses with USER_NOT_FOUND. */
export function getUser(tx: Tx, id: string): Row<'users'> {
  const user = tx.get(query.selectFrom('users').selectAll().where('id', '=', id));
  if (!user || user.email.startsWith(REMOVED)) throw new Refusal('USER_NOT_FOUND', 'no user has this id');
  return user;
}

/** Tells whether a user is an operator now. */
export function isOperator(tx: Tx, id: string): boolean {
  return tx.get(rowById('users', id))?.is_operator === 1;
}

export function membershipsOf(tx: Tx, userId: string): Row<'memberships'>[] {
  return tx.all(query.selectFrom('memberships').selectAll().where('user_id', '=', userId));
}

/** Returns the user who signs in with this e-mail address. */
export function findUserByEmail(tx: Tx, email: string): Row<'users'> | undefined {
  return tx.get(byEmail({ email }));
}

const byEmail = compileOnce(({ email }: { email: string }) =>
  query.selectFrom('users').selectAll().where('email', '=', email),
);

/** Returns the organization that a user joined first; undefined: the user belongs to none. */
export function firstOrganization(tx: Tx, userId: string): OwnOrganization | undefined {
  return tx.get(
    query
      .selectFrom('memberships')
      .innerJoin('organizations', 'organizations.id', 'memberships.organization_id')
      .selectAll('organizations')
      .select('memberships.role')
      .where('memberships.user_id', '=', userId)
      .orderBy('memberships.joined_at')
      .orderBy('organizations.id')
      .limit(1),
  );
}

export interface Membership {
  organizationId: string;
  name: string;
  role: Role;
}

/** Returns the signed-in user and its memberships, oldest first. Refuses with TOKEN_INVALID when the user does not exist. */
export function describeUser(core: Core, userId: string): { user: Row<'users'>; memberships: Membership[] } {
  return core.store.transact((tx) => {
    const user = tx.get(query.selectFrom('users').selectAll().where('id', '=', userId));
    if (!user) throw new Refusal('TOKEN_INVALID', 'this session belongs to no user');
    const memberships = tx.all(
      query
        .selectFrom('memberships')
        .innerJoin('organizations', 'organizations.id', 'memberships.organization_id')
        .select(['organizations.id as organizationId', 'organizations.name', 'memberships.role'])
        .where('memberships.user_id', '=', userId)
        .orderBy('memberships.joined_at')
        .orderBy('organizations.id'),
    );
    return { user, memberships };
  });
}
