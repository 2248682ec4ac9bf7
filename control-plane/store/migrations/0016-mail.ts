/** Mails that wait, up to which event they were made, what people have switched off, and from where they sign in. */
export const mail = `
CREATE TABLE mails (
  id TEXT NOT NULL PRIMARY KEY,
  -- Null: to an address, which may have no account.
  user_id TEXT REFERENCES users (id),
  address TEXT NOT NULL,
  -- The organization that an invitation is to.
  organization_id TEXT REFERENCES organizations (id),
  kind TEXT NOT NULL CHECK (kind IN ('invite', 'balance_low', 'balance_exhausted', 'disks_at_risk', 'paid', 'payment_failed', 'sign_in', 'password_reset', 'password_changed', 'sign_up', 'sign_up_exists', 'digest')),
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
CREATE INDEX mails_queued ON mails (next_attempt_at) WHERE state = 'queued';
CREATE INDEX mails_queued_by_age ON mails (created_at) WHERE state = 'queued';
CREATE INDEX mails_held ON mails (next_attempt_at) WHERE state = 'held';
CREATE INDEX mails_open ON mails (queue) WHERE finished_at IS NULL;
CREATE INDEX mails_attempted ON mails (queue, attempted_at) WHERE attempted_at IS NOT NULL;
CREATE INDEX mails_finished ON mails (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX mails_of_user ON mails (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX mails_invites ON mails (organization_id, created_at) WHERE kind = 'invite';
CREATE INDEX mails_invites_to ON mails (queue, created_at) WHERE kind = 'invite';

-- Up to which number the events of a stream were made into mails.
CREATE TABLE mail_positions (
  stream TEXT NOT NULL PRIMARY KEY,
  number INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX events_for_mail ON events (stream, number)
  WHERE type IN ('billing.balance_low', 'billing.balance_exhausted', 'billing.disks_at_risk', 'billing.paid', 'billing.payment_failed');

ALTER TABLE payments ADD COLUMN failed_at INTEGER;

-- What a person has chosen; without a row, mails of the category are sent.
CREATE TABLE mail_preferences (
  user_id TEXT NOT NULL REFERENCES users (id),
  category TEXT NOT NULL CHECK (category IN ('low_balance', 'disks', 'money')),
  enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (user_id, category)
) STRICT, WITHOUT ROWID;

CREATE TABLE known_networks (
  user_id TEXT NOT NULL REFERENCES users (id),
  network TEXT NOT NULL,
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (user_id, network)
) STRICT, WITHOUT ROWID;
CREATE INDEX known_networks_by_age ON known_networks (seen_at);
`;
