/** What leaves the database as audit lines: how far each output has come, and the acts of organizations in the order of their commits. */
export const auditOut = `
-- The event epoch in which the entry was written; null: an earlier release wrote it.
ALTER TABLE audit_log ADD COLUMN epoch INTEGER;

-- How far each output has come in each source. An output that is off has no row.
CREATE TABLE audit_cursors (
  output TEXT NOT NULL CHECK (output IN ('stdout', 'webhook')),
  source TEXT NOT NULL CHECK (source IN ('audit', 'event', 'organization')),
  number INTEGER NOT NULL,
  PRIMARY KEY (output, source)
) STRICT, WITHOUT ROWID;

-- Acts of organizations that an output has not delivered. The newest row is never deleted, so the next number follows from it.
CREATE TABLE queued_acts (
  id INTEGER PRIMARY KEY,
  epoch INTEGER NOT NULL,
  at INTEGER NOT NULL,
  organization_id TEXT NOT NULL,
  number INTEGER NOT NULL
) STRICT;
`;
