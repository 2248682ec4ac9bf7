/** Sign-ins of companies by OpenID Connect: issuers, the domains that they may assert, and accounts that are linked to them. */
export const companyAccounts = `
CREATE TABLE issuers (
  -- A word that the operator has chosen; it is part of the address to which the issuer sends browsers back.
  id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  url TEXT NOT NULL UNIQUE,
  client_id TEXT NOT NULL,
  -- Null: the secret key was lost.
  client_secret_encrypted BLOB,
  is_listed INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE issuer_domains (
  -- In lower case. Only one issuer may assert a domain.
  domain TEXT NOT NULL PRIMARY KEY,
  issuer_id TEXT NOT NULL REFERENCES issuers (id) ON DELETE CASCADE,
  -- Which organization new accounts join; null: each gets its own.
  organization_id TEXT REFERENCES organizations (id),
  role TEXT NOT NULL CHECK (role IN ('member', 'viewer', 'billing')),
  passwords_off INTEGER NOT NULL
) STRICT;
CREATE INDEX issuer_domains_of_issuer ON issuer_domains (issuer_id, domain);

CREATE TABLE identities (
  id TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id),
  -- The address of the issuer: it stays when the issuer is removed, and counts again when it is added again.
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  -- What the issuer has asserted when the account was linked.
  email TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER,
  UNIQUE (issuer, subject)
) STRICT;
CREATE INDEX identities_of_user ON identities (user_id, created_at DESC, id);
`;
