/**
 * Adds limits and caps that were changed or taken away, for time before that is not charged yet; and mails of caps that are used up.
 * Recreates the tables of mails without their CHECKs of kinds, which grow with releases.
 */
export const earlierLimits = `
CREATE TABLE earlier_limits (
  id INTEGER NOT NULL PRIMARY KEY,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  -- The instance; for a cap the organization, or the API key.
  limited_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('stop_at', 'max_charge', 'day', 'month')),
  -- Null: a time.
  limit_micro INTEGER,
  -- It ended GPU time from then on, and until then.
  from_at INTEGER NOT NULL,
  until_at INTEGER NOT NULL,
  -- What was charged, of the time before until_at, in the day or month in which that is.
  spent_micro INTEGER NOT NULL
) STRICT;
CREATE INDEX earlier_limits_of ON earlier_limits (organization_id, limited_id);

CREATE TABLE new_mails (
  id TEXT NOT NULL PRIMARY KEY,
  -- Null: to an address, which may have no account.
  user_id TEXT REFERENCES users (id),
  address TEXT NOT NULL,
  -- The organization that an invitation is to.
  organization_id TEXT REFERENCES organizations (id),
  -- One of MAIL_KINDS.
  kind TEXT NOT NULL,
  -- The person, and what counts together against too many mails.
  queue TEXT NOT NULL,
  -- The event, invitation or sign-in: nobody is told of it twice.
  about TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'held', 'sent', 'failed', 'in_digest', 'cancelled')),
  -- Null once the mail is finished.
  content_encrypted BLOB,
  attempts INTEGER NOT NULL,
  -- Attempts after which the server may have accepted it.
  unanswered INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  next_attempt_at INTEGER NOT NULL,
  attempted_at INTEGER,
  finished_at INTEGER,
  UNIQUE (queue, about)
) STRICT;
INSERT INTO new_mails SELECT * FROM mails;
DROP TABLE mails;
ALTER TABLE new_mails RENAME TO mails;
CREATE INDEX mails_queued ON mails (next_attempt_at) WHERE state = 'queued';
CREATE INDEX mails_queued_by_age ON mails (created_at) WHERE state = 'queued';
CREATE INDEX mails_held ON mails (next_attempt_at) WHERE state = 'held';
CREATE INDEX mails_open ON mails (queue) WHERE finished_at IS NULL;
CREATE INDEX mails_attempted ON mails (queue, attempted_at) WHERE attempted_at IS NOT NULL;
CREATE INDEX mails_finished ON mails (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX mails_of_user ON mails (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX mails_invites ON mails (organization_id, created_at) WHERE kind = 'invite';
CREATE INDEX mails_invites_to ON mails (queue, created_at) WHERE kind = 'invite';

DROP INDEX events_for_mail;
CREATE INDEX events_for_mail ON events (stream, number)
  WHERE type IN ('billing.balance_low', 'billing.balance_exhausted', 'billing.disks_at_risk', 'billing.paid', 'billing.payment_failed', 'billing.spend_cap');

CREATE TABLE new_mail_preferences (
  user_id TEXT NOT NULL REFERENCES users (id),
  -- One of MAIL_CHOICES.
  category TEXT NOT NULL,
  enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (user_id, category)
) STRICT, WITHOUT ROWID;
INSERT INTO new_mail_preferences SELECT * FROM mail_preferences;
DROP TABLE mail_preferences;
ALTER TABLE new_mail_preferences RENAME TO mail_preferences;
`;
