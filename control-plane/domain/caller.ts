/** What a member of an organization is; a later release can add roles. */
export const ROLES = ['admin', 'member', 'billing', 'viewer'] as const;
export type Role = (typeof ROLES)[number];

/**
 * What a caller does in an organization:
 *
 * - read: what it has, without secrets
 * - read_money: balance, burn, payments, charges and caps
 * - change: what it has; also to see its secrets, and to make API keys
 * - change_money: pay, set caps
 * - administer: members, invitations, team keys, webhook endpoints, the organization itself
 */
export type Right = 'read' | 'read_money' | 'change' | 'change_money' | 'administer';

const ROLES_WITH: Readonly<Record<Right, readonly Role[]>> = {
  read: ['admin', 'member', 'viewer'],
  read_money: ['admin', 'member', 'billing', 'viewer'],
  change: ['admin', 'member'],
  change_money: ['admin', 'billing'],
  administer: ['admin'],
};

/** Returns the roles that have a right. */
export function rolesWith(right: Right): readonly Role[] {
  return ROLES_WITH[right];
}

export const API_KEY_KINDS = ['personal', 'team'] as const;
export type ApiKeyKind = (typeof API_KEY_KINDS)[number];

/** Returns the id of the API key that a caller is; null: it is a session. */
export function keyIdOf(caller: SessionCaller | ApiKeyCaller): string | null {
  return caller.kind === 'api_key' ? caller.keyId : null;
}

/** A signed-in user, acting for the active organization. */
export interface SessionCaller {
  kind: 'session';
  sessionId: string;
  userId: string;
  email: string;
  isOperator: boolean;
  /** Whether a second factor was given in this session. */
  isWithFactor: boolean;
  organizationId: string;
  role: Role;
  /** Whether the organization demands a second factor, and none was given in this session. */
  lacksFactor: boolean;
}

/** A signed-in user who belongs to no organization now, and therefore can use only the routes of the user's own account. */
export interface HomelessCaller {
  kind: 'no_organization';
  sessionId: string;
  userId: string;
  email: string;
  isOperator: boolean;
  isWithFactor: boolean;
}

/** An API key. It has the rights of a member of its organization, whatever role its creator has; if it is read-only, of a viewer. */
export interface ApiKeyCaller {
  kind: 'api_key';
  keyId: string;
  keyKind: ApiKeyKind;
  isReadOnly: boolean;
  name: string;
  prefix: string;
  creatorId: string;
  creatorEmail: string;
  organizationId: string;
}

/** The operator who makes a request under `/v1/operator`. */
export type Operator = Pick<SessionCaller, 'userId' | 'email'>;

/** A caller that acts in an organization. */
export type Caller = SessionCaller | ApiKeyCaller;
/** A caller that acts on the user's own account. */
export type AccountCaller = SessionCaller | HomelessCaller;

/** Tells whether a caller has a right in its organization. */
export function may(caller: Caller, right: Right): boolean {
  return ROLES_WITH[right].includes(actingRole(caller));
}

function actingRole(caller: Caller): Role {
  if (caller.kind === 'session') return caller.role;
  return caller.isReadOnly ? 'viewer' : 'member';
}

/** Tells whether a caller may see access tokens and the values of environments: whoever may replace them. */
export function maySeeSecrets(caller: Caller): boolean {
  return may(caller, 'change');
}

/**
 * Tells whether a member who gets another role loses a right: with `change`, their personal API keys end, because these have it; with
 * `administer`, the invitations that they have made.
 */
export function losesRight(right: Right, before: Role, after: Role): boolean {
  const having = ROLES_WITH[right];
  return having.includes(before) && !having.includes(after);
}
