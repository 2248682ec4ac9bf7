export type Role = 'admin' | 'member';
export const API_KEY_KINDS = ['personal', 'team'] as const;
export type ApiKeyKind = (typeof API_KEY_KINDS)[number];

/** A signed-in user, acting for the active organization. */
export interface SessionCaller {
  kind: 'session';
  sessionId: string;
  userId: string;
  email: string;
  isOperator: boolean;
  organizationId: string;
  role: Role;
}

/** A signed-in user who belongs to no organization now: its own account is all that is open to it. */
export interface HomelessCaller {
  kind: 'no_organization';
  sessionId: string;
  userId: string;
  email: string;
  isOperator: boolean;
}

/** An API key: a member of its organization, whatever its creator is. */
export interface ApiKeyCaller {
  kind: 'api_key';
  keyId: string;
  keyKind: ApiKeyKind;
  name: string;
  prefix: string;
  creatorId: string;
  creatorEmail: string;
  organizationId: string;
}

/** Who acts with the powers of an operator. */
export type Operator = Pick<SessionCaller, 'userId' | 'email'>;

/** Who acts in an organization. */
export type Caller = SessionCaller | ApiKeyCaller;
/** Who acts on its own account. */
export type AccountCaller = SessionCaller | HomelessCaller;
