import type { OrganizationNeed } from '../../domain/machines/need.js';
import { invalidField } from '../../domain/refusal.js';
import { query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { endOf, newestFirst, pageOf, type Page, type PageRequest } from '../system/pages.js';
import type { Core } from '../system/platform.js';
import type { OrganizationRow } from './organizations.js';

/** What an operator looks for: the beginning of a name, or of the e-mail address of a member, or what needs an act. */
export interface OrganizationFilter {
  name?: string;
  member_email?: string;
  need?: OrganizationNeed;
}

/**
 * Lists organizations for an operator, newest first; those that were looked for by a name or an address in the order of that, and the
 * suspended ones in the order in which something happens to what they have. Refuses with VALIDATION_FAILED if more than one is given.
 */
export function listOrganizations(
  core: Core,
  { name, member_email, need, ...request }: PageRequest & OrganizationFilter,
): Page<OrganizationRow> {
  if (name !== undefined && member_email !== undefined)
    throw invalidField('member_email', 'cannot be given together with name');
  if (need !== undefined && (name !== undefined || member_email !== undefined))
    throw invalidField('need', 'cannot be given together with name or member_email');
  return core.store.transact((tx) => {
    if (need === 'payment_disputed') return inDispute(tx, request);
    if (need === 'organization_suspended') return suspended(tx, request);
    if (need === 'admin_refused') return withRefusedAdmin(tx, request);
    if (name !== undefined) return withName(tx, name, request);
    if (member_email !== undefined) return withMember(tx, member_email, request);
    return pageOf(tx, query.selectFrom('organizations').selectAll(), request, newestFirst());
  });
}

function inDispute(tx: Tx, request: PageRequest): Page<OrganizationRow> {
  const disputes = query.selectFrom('disputes').select('organization_id').where('state', '=', sql.lit('open'));
  const found = query.selectFrom('organizations').selectAll().where('id', 'in', disputes);
  return pageOf(tx, found, request, newestFirst());
}

function withRefusedAdmin(tx: Tx, request: PageRequest): Page<OrganizationRow> {
  const refused = query.selectFrom('memberships').select('organization_id').where('refused_at', 'is not', null);
  const found = query.selectFrom('organizations').selectAll().where('id', 'in', refused);
  return pageOf(tx, found, request, newestFirst());
}

/** Those that still have something, which is destroyed unless an operator restores them. */
function suspended(tx: Tx, request: PageRequest): Page<OrganizationRow> {
  const found = query.selectFrom('organizations').selectAll().where('suspension_look_at', 'is not', null);
  return pageOf(tx, found, request, {
    by: { suspension_look_at: 'asc', id: 'asc' },
    keyOf: ({ suspension_look_at, id }) => [suspension_look_at ?? 0, id],
  });
}

function withName(tx: Tx, prefix: string, request: PageRequest): Page<OrganizationRow> {
  // As in the index: upper and lower case of A to Z are the same.
  const folded = sql<string>`organizations.name COLLATE NOCASE`;
  const found = query
    .selectFrom('organizations')
    .selectAll()
    .select(folded.as('folded_name'))
    .where(folded, '>=', prefix)
    .where(folded, '<', endOf(prefix));
  return pageOf(tx, found, request, {
    by: { folded_name: 'asc', id: 'asc' },
    keyOf: ({ folded_name, id }) => [folded_name, id],
  });
}

/** An organization with several such members comes once, at the first of their addresses. */
function withMember(tx: Tx, prefix: string, request: PageRequest): Page<OrganizationRow> {
  const found = query
    .selectFrom('users')
    .innerJoin('memberships', 'memberships.user_id', 'users.id')
    .innerJoin('organizations', 'organizations.id', 'memberships.organization_id')
    .selectAll('organizations')
    .select(['users.email', 'memberships.joined_at', 'memberships.organization_id'])
    .where('users.email', '>=', prefix)
    .where('users.email', '<', endOf(prefix))
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('memberships as other')
            .innerJoin('users as earlier', 'earlier.id', 'other.user_id')
            .select(sql.lit(1).as('one'))
            .whereRef('other.organization_id', '=', 'memberships.organization_id')
            .where('earlier.email', '>=', prefix)
            .whereRef('earlier.email', '<', 'users.email'),
        ),
      ),
    );
  return pageOf(tx, found, request, {
    by: { email: 'asc', joined_at: 'asc', organization_id: 'asc' },
    keyOf: ({ email, joined_at, organization_id }) => [email, joined_at, organization_id],
  });
}
