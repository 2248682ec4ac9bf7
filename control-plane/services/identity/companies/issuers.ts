import { anOperator, type Act } from '../../../domain/act.js';
import type { Operator } from '../../../domain/caller.js';
import {
  domainOf,
  issuerUrlOf,
  obstacleToAccept,
  type DomainRole,
  type IssuerAccess,
} from '../../../domain/identity/company.js';
import { Refusal, invalidField } from '../../../domain/refusal.js';
import type { Row } from '../../../store/schema.js';
import { compileOnce, insertRow, query, rowById, updateRows } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import type { Encryption } from '../../secrets/encryption.js';
import { recordAct } from '../../system/acts.js';
import { recordAudit } from '../../system/audit.js';
import { newestFirst, pageOf, type Page, type PageRequest } from '../../system/pages.js';
import type { Core } from '../../system/platform.js';
import { checkLimit } from '../../system/row-limits.js';
import { getOrganization } from '../../organizations/organizations.js';

/** A domain of e-mail addresses that an issuer may assert. */
export interface IssuerDomain {
  domain: string;
  /** Which organization new accounts join; null: each gets its own. */
  organization_id: string | null;
  role: DomainRole;
  passwords_off: boolean;
  /** Whether an operator answers for its addresses where the issuer does not say that it has verified them. */
  accept_unverified: boolean;
}

export interface IssuerSettings {
  name: string;
  issuer: string;
  client_id: string;
  client_secret: string;
  /** Whether the page to sign in names it. */
  listed: boolean;
  /** How long its sessions last; null: as long as any other. */
  session_hours: number | null;
  /** Whether they are renewed silently; without `session_hours` there is nothing to renew. */
  renews_sessions: boolean;
  domains: readonly IssuerDomain[];
}

export type IssuerRow = Row<'issuers'>;
export type Issuer = IssuerRow & { domains: IssuerDomain[] };

/** Lists the issuers for an operator, newest first. */
export function listIssuers(core: Core, request: PageRequest): Page<Issuer> {
  return core.store.transact((tx) => {
    const { items, ...rest } = pageOf(tx, query.selectFrom('issuers').selectAll(), request, newestFirst());
    return { ...rest, items: items.map((row) => withDomains(tx, row)) };
  });
}

/**
 * Adds an issuer, or replaces the settings of the one with this id, for an operator. Refuses with ORGANIZATION_NOT_FOUND, ISSUER_TAKEN,
 * VALIDATION_FAILED and LIMIT_REACHED.
 */
export function setIssuer(core: Core, operator: Operator, id: string, settings: IssuerSettings): Issuer {
  return core.store.transact((tx) => {
    const columns = columnsOf(core.encryption, settings);
    const known = tx.get(rowById('issuers', id));
    if (!known) checkLimit(tx, 'issuers', query.selectFrom('issuers').select('id'));
    checkUrlIsFree(tx, id, columns.url);
    if (known) tx.run(updateRows('issuers', columns, { id }));
    else tx.run(insertRow('issuers', { id, ...columns, created_at: tx.now }));
    setDomains(tx, id, settings.domains);
    checkAcceptance(tx, id);
    return audited(tx, operator, 'issuer.set', id);
  });
}

/** Changes settings of an issuer for an operator; the domains are replaced as a whole. Refuses like {@link setIssuer}, and with ISSUER_NOT_FOUND. */
export function changeIssuer(
  core: Core,
  operator: Operator,
  id: string,
  { domains, ...changes }: Partial<IssuerSettings>,
): Issuer {
  return core.store.transact((tx) => {
    getIssuer(tx, id);
    const columns = columnsOf(core.encryption, changes);
    if (columns.url !== undefined) checkUrlIsFree(tx, id, columns.url);
    if (Object.keys(columns).length > 0) tx.run(updateRows('issuers', columns, { id }));
    if (domains) setDomains(tx, id, domains);
    checkAcceptance(tx, id);
    return audited(tx, operator, 'issuer.change', id);
  });
}

/**
 * Removes an issuer for an operator: nobody signs in with it any more. Linked accounts stay, and so do sessions. Refuses with
 * ISSUER_NOT_FOUND.
 */
export function removeIssuer(core: Core, operator: Operator, id: string): void {
  core.store.transact((tx) => {
    const { name, url, domains } = getIssuer(tx, id);
    tx.run(query.deleteFrom('issuers').where('id', '=', id));
    recordDomains(tx, domains, []);
    recordAudit(tx, operator, 'issuer.remove', id, { name, issuer: url });
  });
}

/** Returns an issuer. Refuses with ISSUER_NOT_FOUND. */
export function getIssuer(tx: Tx, id: string): Issuer {
  const row = tx.get(rowById('issuers', id));
  if (!row) throw issuerNotFound();
  return withDomains(tx, row);
}

/** Returns the issuer that may assert the domain of an e-mail address. Refuses with ISSUER_NOT_FOUND. */
export function findIssuerFor(core: Core, email: string): IssuerRow {
  return core.store.transact((tx) => {
    const issuer = tx.get(issuerOfDomain({ domain: domainOf(email) ?? '' }));
    if (!issuer) throw issuerNotFound();
    return issuer;
  });
}

/** Tells whether any company can sign in. */
export function hasIssuers({ store }: Core): boolean {
  return store.transact((tx) => tx.get(query.selectFrom('issuers').select('id').limit(1)) !== undefined);
}

/** Returns the names and ids of the issuers that the page to sign in names, by name. */
export function listedIssuers({ store }: Core): Pick<IssuerRow, 'id' | 'name'>[] {
  return store
    .transact((tx) => tx.all(query.selectFrom('issuers').select(['id', 'name', 'is_listed'])))
    .filter(({ is_listed }) => is_listed === 1)
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** Returns what is needed to ask an issuer. Refuses with ISSUER_UNAVAILABLE if its secret was lost. */
export function accessTo({ encryption }: Pick<Core, 'encryption'>, issuer: IssuerRow): IssuerAccess {
  const { id, url, client_id, client_secret_encrypted } = issuer;
  if (!client_secret_encrypted)
    throw new Refusal('ISSUER_UNAVAILABLE', 'the operator has to give the secret for this sign-in again');
  const clientSecret = encryption.decrypt('issuer.client_secret', client_secret_encrypted) as string;
  return { id, url, clientId: client_id, clientSecret };
}

/** Deletes the secrets of all issuers, because the key that encrypts them is lost: operators give them again. */
export function forgetIssuerSecrets(tx: Tx): void {
  tx.run(query.updateTable('issuers').set({ client_secret_encrypted: null }));
}

function issuerNotFound(): Refusal {
  return new Refusal('ISSUER_NOT_FOUND', "no company's sign-in is set up for this");
}

type Columns = Pick<
  IssuerRow,
  'name' | 'url' | 'client_id' | 'client_secret_encrypted' | 'is_listed' | 'session_hours' | 'renews_sessions'
>;

function columnsOf(encryption: Encryption, settings: Omit<IssuerSettings, 'domains'>): Columns;
function columnsOf(encryption: Encryption, settings: Partial<Omit<IssuerSettings, 'domains'>>): Partial<Columns>;
function columnsOf(encryption: Encryption, settings: Partial<Omit<IssuerSettings, 'domains'>>): Partial<Columns> {
  const { name, issuer, client_id, client_secret, listed, session_hours, renews_sessions } = settings;
  return {
    ...(name === undefined ? {} : { name }),
    ...(issuer === undefined ? {} : { url: checkedUrl(issuer) }),
    ...(client_id === undefined ? {} : { client_id }),
    ...(client_secret === undefined
      ? {}
      : { client_secret_encrypted: encryption.encrypt('issuer.client_secret', client_secret) }),
    ...(listed === undefined ? {} : { is_listed: listed ? 1 : 0 }),
    ...(session_hours === undefined ? {} : { session_hours }),
    ...(renews_sessions === undefined ? {} : { renews_sessions: renews_sessions ? 1 : 0 }),
  };
}

function checkedUrl(text: string): string {
  const url = issuerUrlOf(text);
  if (url !== undefined) return url;
  throw invalidField('issuer', 'must be an https address without a query; http is allowed only at loopback');
}

function checkUrlIsFree(tx: Tx, id: string, url: string): void {
  const other = tx.get(query.selectFrom('issuers').select('id').where('url', '=', url).where('id', '<>', id));
  if (other) throw new Refusal('ISSUER_TAKEN', `"${other.id}" has this issuer already; change that one`);
}

/** Refuses with VALIDATION_FAILED to accept addresses for which nobody can answer. */
function checkAcceptance(tx: Tx, id: string): void {
  const { url, domains } = getIssuer(tx, id);
  const obstacle = domains.some((domain) => domain.accept_unverified) ? obstacleToAccept(url) : undefined;
  if (obstacle !== undefined) throw invalidField('domains', `cannot have accept_unverified: ${obstacle}`);
}

/** Replaces the domains of an issuer. */
function setDomains(tx: Tx, issuer_id: string, domains: readonly IssuerDomain[]): void {
  const before = readDomains(tx, issuer_id);
  tx.run(query.deleteFrom('issuer_domains').where('issuer_id', '=', issuer_id));
  for (const { domain, organization_id, role, ...flags } of domains) {
    if (organization_id !== null) getOrganization(tx, organization_id);
    const taken = tx.get(domainRow({ domain }));
    if (taken?.issuer_id === issuer_id) throw invalidField('domains', `${domain} is named twice`);
    if (taken) throw new Refusal('ISSUER_TAKEN', `"${taken.issuer_id}" speaks for ${domain}; take it away there first`);
    const passwords_off = flags.passwords_off ? 1 : 0;
    const accept_unverified = flags.accept_unverified ? 1 : 0;
    tx.run(insertRow('issuer_domains', { domain, issuer_id, organization_id, role, passwords_off, accept_unverified }));
  }
  recordDomains(tx, before, domains);
}

/** Records in organizations which domains they get and lose: people with an address there become members. */
function recordDomains(tx: Tx, before: readonly IssuerDomain[], after: readonly IssuerDomain[]): void {
  const record = (act: Act, domains: readonly IssuerDomain[], others: readonly IssuerDomain[]) => {
    for (const one of domains) {
      const { domain, organization_id, role } = one;
      const isSame = (other: IssuerDomain) =>
        other.domain === domain && other.organization_id === organization_id && other.role === role;
      if (organization_id !== null && !others.some(isSame))
        recordAct(tx, organization_id, anOperator(null), act, `domains/${domain}`);
    }
  };
  record('domain.withdraw', before, after);
  record('domain.assign', after, before);
}

/** Returns a domain that an issuer may assert, in lower case. */
export function findDomain(tx: Tx, domain: string): Row<'issuer_domains'> | undefined {
  return tx.get(domainRow({ domain }));
}

function withDomains(tx: Tx, row: IssuerRow): Issuer {
  return { ...row, domains: readDomains(tx, row.id) };
}

function readDomains(tx: Tx, id: string): IssuerDomain[] {
  return tx.all(domainsOf({ id })).map(({ domain, organization_id, role, ...flags }) => ({
    domain,
    organization_id,
    role,
    passwords_off: flags.passwords_off === 1,
    accept_unverified: flags.accept_unverified === 1,
  }));
}

/** Records an operator's change, as it is now, without the secret. */
function audited(tx: Tx, operator: Operator, action: 'issuer.set' | 'issuer.change', id: string): Issuer {
  const issuer = getIssuer(tx, id);
  const { name, url, client_id, is_listed, session_hours, renews_sessions, domains } = issuer;
  const sessions = { session_hours, renews_sessions: renews_sessions === 1 };
  recordAudit(tx, operator, action, id, {
    name,
    issuer: url,
    client_id,
    listed: is_listed === 1,
    ...sessions,
    domains,
  });
  return issuer;
}

const domainsOf = compileOnce(({ id }: { id: string }) =>
  query.selectFrom('issuer_domains').selectAll().where('issuer_id', '=', id).orderBy('domain'),
);

const domainRow = compileOnce(({ domain }: { domain: string }) =>
  query.selectFrom('issuer_domains').selectAll().where('domain', '=', domain),
);

const issuerOfDomain = compileOnce(({ domain }: { domain: string }) =>
  query
    .selectFrom('issuer_domains')
    .innerJoin('issuers', 'issuers.id', 'issuer_domains.issuer_id')
    .selectAll('issuers')
    .where('issuer_domains.domain', '=', domain),
);
