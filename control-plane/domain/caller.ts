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

/** A signed-in user who belongs to no organization now, and therefore can use only the routes of the user's own account. */
export interface HomelessCaller {
  kind: 'no_organization';
  sessionId: string;
  userId: string;
  email: string;
  isOperator: boolean;
}

/** An API key. It has the rights of a member of its organization, whatever role its creator has. */
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

/** The operator who makes a request under `/v1/operator`. */
export type Operator = Pick<SessionCaller, 'userId' | 'email'>;

/** A caller that acts in an organization. */
export type Caller = SessionCaller | ApiKeyCaller;
/** A caller that acts on the user's own account. */
export type AccountCaller = SessionCaller | HomelessCaller;
