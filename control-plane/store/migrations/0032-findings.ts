/** What the doctor finds on hosts, and machines found by the beginning of their name or address. */
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
`;
