import type { Issuer } from '../../models.js';

export type DomainDraft = Issuer['domains'][number];

/** What stands in the form of a company's sign-in, but for the secret: a draft is kept in the tab. */
export interface SignInDraft {
  id: string;
  name: string;
  issuer: string;
  client_id: string;
  listed: boolean;
  /** How many hours its sessions last; empty: as long as any other. */
  session_hours: string;
  renews_sessions: boolean;
  domains: DomainDraft[];
  /** Whether a secret was typed, which is kept nowhere. */
  hasSecret: boolean;
}

export const NEW_DOMAIN: DomainDraft = {
  domain: '',
  organization_id: null,
  role: 'member',
  passwords_off: false,
  accept_unverified: false,
};

/** Returns the form of a company's sign-in as it is; undefined: of a new one. */
export function draftOf(issuer: Issuer | undefined): SignInDraft {
  if (issuer === undefined)
    return { id: '', name: '', issuer: '', client_id: '', ...NEW_SESSIONS, domains: [NEW_DOMAIN], hasSecret: false };
  const { id, name, client_id, listed, renews_sessions, domains } = issuer;
  const session_hours = issuer.session_hours?.toString() ?? '';
  const sessions = { session_hours, renews_sessions };
  return { id, name, issuer: issuer.issuer, client_id, listed, ...sessions, domains, hasSecret: false };
}

const NEW_SESSIONS = { listed: false, session_hours: '', renews_sessions: false };

/** Returns what to send of it. Lines without a domain are left out. */
export function bodyOf({ name, issuer, client_id, listed, session_hours, renews_sessions, domains }: SignInDraft) {
  return {
    name: name.trim(),
    issuer: issuer.trim(),
    client_id: client_id.trim(),
    listed,
    session_hours: session_hours.trim() === '' ? null : Number(session_hours),
    renews_sessions: session_hours.trim() !== '' && renews_sessions,
    domains: domains.filter(isSent).map((line) => ({
      ...line,
      domain: line.domain.trim().toLowerCase(),
    })),
  };
}

export function isSent({ domain }: DomainDraft): boolean {
  return domain.trim() !== '';
}
