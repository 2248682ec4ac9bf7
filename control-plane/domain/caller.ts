export type Role = 'admin' | 'member';
export type ApiKeyKind = 'personal' | 'team';

/** A signed-in user, acting for the active organisation. */
export interface SessionCaller {
  kind: 'session';
  sessionId: string;
  userId: string;
  email: string;
  isOperator: boolean;
  organizationId: string;
  role: Role;
}

/** An API key: a member of its organisation, whatever its creator is. */
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

export type Caller = SessionCaller | ApiKeyCaller;
