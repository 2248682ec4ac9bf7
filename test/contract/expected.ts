import type { Renter } from '../harness/control-plane.js';
import type { Access, ObjectKind, Route } from './routes.js';

export type OwnKind = 'api_key' | 'identity' | 'second_factor' | 'session' | 'ssh_key';

/** One organization with people, keys and things of its own. */
export interface Side {
  admin: Renter;
  member: Renter;
  things: Record<ObjectKind, string>;
  /** The API key, the SSH key, a session, a second factor and a linked account of each user, which are nobody else's. */
  ofUser: Map<string, Record<OwnKind, string>>;
}

export interface Credential {
  name: string;
  token: string | undefined;
  /** The token is sent as a cookie, with or without the proof that a page of the control plane sends it. */
  cookie?: 'with proof' | 'without proof';
  /** Nothing that it could be is alive. */
  dead?: true;
  /** A key that may not be used from here. */
  isForeign?: true;
  /** It must change nothing with any request of a route that is not public and not about its own account. */
  onlyReads?: true;
  kind: 'key' | 'session' | 'no_organization';
  role: 'admin' | 'member' | 'billing' | 'viewer' | 'operator';
  side: Side;
  other: Side;
  userId: string;
}

export type Target = 'own' | 'foreign' | 'unknown';
export type OrgHeader = 'absent' | 'own' | 'other';

export interface Cell {
  route: Route;
  credential: Credential;
  target: Target;
  header: OrgHeader;
}

/** What API rules 11 to 15 and 55 to 60 say of a cell: a refusal, or that nobody stands in the way. */
export function expected({ route, credential, target, header }: Cell): string {
  const { access } = route;
  const { kind, role, dead, isForeign, cookie } = credential;
  // It answers no browser.
  if (cookie && route.operation === 'GET /metrics') return '404 NOT_FOUND';
  // A key that names another organization is refused wherever it is sent.
  if (access === 'public')
    return kind === 'key' && header === 'other' && !dead && !isForeign ? 'passes' : found(route, target, credential);
  if (dead) return '401 TOKEN_INVALID';
  if (cookie === 'without proof') return '403 COOKIE_REFUSED';
  if (isForeign) return '403 API_KEY_ADDRESS';
  if (access === 'operator') {
    if (kind === 'key' && header === 'other') return '403 ORG_MISMATCH';
    const admitted = role === 'operator' && header !== 'other';
    return admitted ? found(route, target, credential) : '404 NOT_FOUND';
  }
  if (header === 'other' || (kind === 'no_organization' && (header === 'own' || access !== 'account')))
    return '403 ORG_MISMATCH';
  if (access === 'account') return kind === 'key' ? '401 TOKEN_INVALID' : found(route, target, credential);
  if (kind === 'key' && !['read', 'money', 'member'].includes(access))
    return access === 'session' ? '401 TOKEN_INVALID' : '403 ADMIN_REQUIRED';
  if (!ROLES_FOR[access].includes(role === 'operator' ? 'member' : role)) {
    if (kind === 'key') return '403 API_KEY_READ_ONLY';
    return access === 'admin' || access === 'pay' ? '403 ADMIN_REQUIRED' : '403 ROLE_NOT_ALLOWED';
  }
  return found(route, target, credential);
}

/** Who may call what in an organization; a read-only key is a viewer, any other key a member. */
const ROLES_FOR: Readonly<Record<Exclude<Access, 'public' | 'account' | 'operator'>, readonly string[]>> = {
  read: ['admin', 'member', 'viewer'],
  money: ['admin', 'member', 'viewer', 'billing'],
  member: ['admin', 'member'],
  session: ['admin', 'member'],
  credentials: ['admin', 'member'],
  pay: ['admin', 'billing'],
  admin: ['admin'],
};

/** Things that are the marketplace's belong to nobody; what is a user's own is another user's alone. */
function found(
  { object, notFound = '', access }: Route,
  target: Target,
  { side, userId, kind, role }: Credential,
): string {
  const everybodys = object === 'offer' || access === 'operator' || access === 'public';
  if (!object || (target === 'foreign' && everybodys)) return 'passes';
  const missing = `404 ${notFound}`;
  if (target !== 'own') return missing;
  if (object === 'identity' || object === 'ssh_key' || object === 'session' || object === 'second_factor')
    return side.ofUser.has(userId) ? 'passes' : missing;
  if (object === 'api_key' && access === 'credentials')
    return role === 'admin' || side.ofUser.has(userId) ? 'passes' : '403 ADMIN_REQUIRED';
  // An invitation is for the one whom it names, who is none of these.
  if (object === 'invite_token' || object === 'invite_of_address') return missing;
  // A code is for the session in which it was typed, which is none of these.
  if (object === 'device_code') return missing;
  if (object === 'organization' && kind === 'no_organization') return missing;
  return 'passes';
}
