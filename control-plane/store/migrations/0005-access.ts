/**
 * Adds the replacement of an instance's access and its command. Recreates the table `commands`, because the CHECK of `kind`
 * changes.
 */
export const access = `
-- How often its access token or SSH key was replaced, and how far that has come.
ALTER TABLE instances ADD COLUMN access_revision INTEGER NOT NULL DEFAULT 0;
ALTER TABLE instances ADD COLUMN access_replacement TEXT
  CHECK (access_replacement IN ('pending', 'applied', 'token_only', 'refused'));
-- Whether the agent can replace it.
ALTER TABLE machines ADD COLUMN access_replaceable INTEGER NOT NULL DEFAULT 0;
CREATE TABLE new_commands (
  id TEXT PRIMARY KEY,
  -- An instance, or what a workload in quarantine is taken for.
  instance_id TEXT NOT NULL,
  machine_id TEXT NOT NULL REFERENCES machines (id),
  sequence INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('provision', 'start', 'stop', 'release', 'destroy', 'access')),
  state TEXT NOT NULL CHECK (state IN ('open', 'closed', 'done', 'refused', 'failed', 'stale')),
  created_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  next_send_at INTEGER NOT NULL,
  accepted_at INTEGER,
  finished_at INTEGER,
  code TEXT,
  message TEXT,
  -- The request of the API that asked for it.
  request_id TEXT,
  UNIQUE (machine_id, instance_id, sequence)
) STRICT;
INSERT INTO new_commands (id, instance_id, machine_id, sequence, kind, state, created_at, attempts, next_send_at, accepted_at,
  finished_at, code, message, request_id)
  SELECT id, instance_id, machine_id, sequence, kind, state, created_at, attempts, next_send_at, accepted_at,
  finished_at, code, message, request_id FROM commands;
DROP TABLE commands;
ALTER TABLE new_commands RENAME TO commands;
CREATE INDEX commands_to_send ON commands (next_send_at) WHERE state = 'open';
CREATE INDEX commands_of_machine ON commands (machine_id) WHERE state = 'open';
`;
