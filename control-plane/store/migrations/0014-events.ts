/**
 * One table of events for each organization and for the operators. The timeline of an instance is the part of its organization's
 * events that names it: the rows of the old table become these, in the order in which they were written.
 */
export const events = `
CREATE TABLE events (
  -- An organization, or 'operators'.
  stream TEXT NOT NULL,
  -- Without a gap in each stream, from 1.
  number INTEGER NOT NULL,
  -- Raised by each restore, which takes numbers back.
  epoch INTEGER NOT NULL,
  at INTEGER NOT NULL,
  type TEXT NOT NULL,
  subject TEXT NOT NULL,
  instance_id TEXT REFERENCES instances (id),
  -- What the timeline of an instance shows.
  kind TEXT,
  message TEXT,
  data TEXT NOT NULL,
  PRIMARY KEY (stream, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX events_by_instance ON events (instance_id, number) WHERE instance_id IS NOT NULL;
CREATE INDEX events_by_age ON events (at) WHERE instance_id IS NULL;

-- Up to which number rows of a stream have been deleted; those of instances may be there still.
CREATE TABLE event_streams (
  stream TEXT NOT NULL PRIMARY KEY,
  expired_to INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The last warning that an organization has had, in hours before the balance or its disks are gone; null: none, or it was lifted.
ALTER TABLE organizations ADD COLUMN balance_low_hours INTEGER;
ALTER TABLE organizations ADD COLUMN disks_at_risk_hours INTEGER;
-- Since when the operators know that a machine is away, and that a command is stuck.
ALTER TABLE machines ADD COLUMN away_since INTEGER;
ALTER TABLE commands ADD COLUMN stuck_since INTEGER;
-- What operators know of a GPU's health, and since when; and whether they know of a workload in quarantine.
ALTER TABLE gpus ADD COLUMN told_healthy INTEGER NOT NULL DEFAULT 1;
ALTER TABLE gpus ADD COLUMN told_at INTEGER;
UPDATE gpus SET told_healthy = healthy;
CREATE INDEX gpus_untold ON gpus (machine_id, uuid) WHERE healthy <> told_healthy;
ALTER TABLE quarantine ADD COLUMN told INTEGER NOT NULL DEFAULT 0;
UPDATE quarantine SET told = 1;
CREATE INDEX quarantine_untold ON quarantine (found_at) WHERE told = 0;
CREATE INDEX commands_not_stuck ON commands (created_at) WHERE state = 'open' AND stuck_since IS NULL;

INSERT OR IGNORE INTO meta VALUES ('event_epoch', '1');

INSERT INTO events (stream, number, epoch, at, type, subject, instance_id, kind, message, data)
  SELECT organization_id, row_number() OVER (PARTITION BY organization_id ORDER BY instance_events.id),
    (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'event_epoch'),
    at, 'instance.noted', 'instances/' || instance_id, instance_id, kind, message, '{}'
  FROM instance_events JOIN instances ON instances.id = instance_id;

DROP TABLE instance_events;
`;
