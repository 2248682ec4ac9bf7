/** What the doctor finds on hosts; machines found by the beginning of their name or address, and tokens that still let a host in. */
export const findings = `
-- Whether its agent reports what the doctor finds.
ALTER TABLE machines ADD COLUMN reports_findings INTEGER NOT NULL DEFAULT 0;

-- The newest report of each machine.
CREATE TABLE findings (
  machine_id TEXT PRIMARY KEY REFERENCES machines (id),
  reported_at INTEGER NOT NULL,
  -- JSON: see services/machines/findings.ts.
  findings TEXT NOT NULL
) STRICT;

CREATE INDEX machines_by_name ON machines (name COLLATE NOCASE, id) WHERE removed_at IS NULL;
CREATE INDEX machines_by_address ON machines (public_address COLLATE NOCASE, id) WHERE removed_at IS NULL;
CREATE INDEX enrollment_tokens_usable ON enrollment_tokens (expires_at, id) WHERE revoked_at IS NULL AND uses < max_uses;
`;
