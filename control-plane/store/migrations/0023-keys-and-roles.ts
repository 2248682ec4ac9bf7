/**
 * Lets API keys be restricted and expire, and adds the roles billing and viewer. Recreates the tables `memberships` and `invites`,
 * because the CHECK of `role` changes.
 */
export const keysAndRoles = `
ALTER TABLE api_keys ADD COLUMN read_only INTEGER NOT NULL DEFAULT 0;
-- A JSON list of IP addresses and blocks. Null: every address.
ALTER TABLE api_keys ADD COLUMN allowed_addresses TEXT;
-- Null: never.
ALTER TABLE api_keys ADD COLUMN expires_at INTEGER;
CREATE INDEX api_keys_expiring ON api_keys (expires_at) WHERE revoked_at IS NULL AND expires_at IS NOT NULL;

CREATE TABLE new_memberships (
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  user_id TEXT NOT NULL REFERENCES users (id),
  role TEXT NOT NULL CHECK (role IN ('admin', 'member', 'billing', 'viewer')),
  joined_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, user_id)
) STRICT, WITHOUT ROWID;
INSERT INTO new_memberships (organization_id, user_id, role, joined_at)
  SELECT organization_id, user_id, role, joined_at FROM memberships;
DROP TABLE memberships;
ALTER TABLE new_memberships RENAME TO memberships;
CREATE INDEX memberships_by_user ON memberships (user_id, joined_at);
CREATE INDEX memberships_by_organization ON memberships (organization_id, joined_at, user_id);

CREATE TABLE new_invites (
  id TEXT PRIMARY KEY,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  email TEXT NOT NULL COLLATE NOCASE,
  role TEXT NOT NULL CHECK (role IN ('admin', 'member', 'billing', 'viewer')),
  token_hash TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
INSERT INTO new_invites (id, organization_id, email, role, token_hash, created_at, expires_at)
  SELECT id, organization_id, email, role, token_hash, created_at, expires_at FROM invites;
DROP TABLE invites;
ALTER TABLE new_invites RENAME TO invites;
CREATE INDEX invites_by_organization ON invites (organization_id, created_at);
CREATE INDEX invites_by_expiry ON invites (expires_at);
`;
