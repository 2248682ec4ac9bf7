/** Suspended organizations, notices to the renters of a machine, and what was done in an organization. */
export const operatorsAct = `
-- Null: the organization is not suspended.
ALTER TABLE organizations ADD COLUMN suspended_at INTEGER;
ALTER TABLE organizations ADD COLUMN suspended_reason TEXT;
ALTER TABLE organizations ADD COLUMN suspended_keep_days INTEGER;
ALTER TABLE organizations ADD COLUMN disks_kept_until INTEGER;
-- The last warning that disks of a suspended organization will be gone, in hours before; null: none.
ALTER TABLE organizations ADD COLUMN suspension_told_hours INTEGER;
-- When the worker looks at a suspended organization next; null: it has nothing that could run or be destroyed.
ALTER TABLE organizations ADD COLUMN suspension_look_at INTEGER;
CREATE INDEX organizations_suspended ON organizations (suspension_look_at) WHERE suspension_look_at IS NOT NULL;

-- When an operator last told the renters of a machine something.
ALTER TABLE machines ADD COLUMN noticed_at INTEGER;

CREATE INDEX users_operators ON users (id) WHERE is_operator = 1;

CREATE TABLE organization_acts (
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  -- The oldest rows of an organization are deleted.
  number INTEGER NOT NULL,
  at INTEGER NOT NULL,
  actor_kind TEXT NOT NULL CHECK (actor_kind IN ('user', 'api_key', 'operator', 'system')),
  -- Null: an operator, or the control plane itself.
  actor_id TEXT,
  actor_name TEXT NOT NULL,
  -- Null: not by a request, or its address is unknown.
  address TEXT,
  action TEXT NOT NULL,
  -- The path of what it was done to.
  object TEXT NOT NULL,
  reason TEXT,
  PRIMARY KEY (organization_id, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX organization_acts_by_age ON organization_acts (at);

CREATE TABLE new_mails (
  id TEXT NOT NULL PRIMARY KEY,
  -- Null: to an address, which may have no account.
  user_id TEXT REFERENCES users (id),
  address TEXT NOT NULL,
  -- The organization that an invitation is to.
  organization_id TEXT REFERENCES organizations (id),
  kind TEXT NOT NULL CHECK (kind IN ('invite', 'balance_low', 'balance_exhausted', 'disks_at_risk', 'paid', 'payment_failed', 'sign_in', 'suspended', 'restored', 'suspended_disks', 'notice', 'digest')),
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
  WHERE type IN ('billing.balance_low', 'billing.balance_exhausted', 'billing.disks_at_risk', 'billing.paid', 'billing.payment_failed', 'organization.suspended', 'organization.restored', 'organization.disks_at_risk', 'machine.notice');

CREATE TABLE new_mail_preferences (
  user_id TEXT NOT NULL REFERENCES users (id),
  category TEXT NOT NULL CHECK (category IN ('low_balance', 'disks', 'money', 'notices')),
  enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (user_id, category)
) STRICT, WITHOUT ROWID;
INSERT INTO new_mail_preferences SELECT * FROM mail_preferences;
DROP TABLE mail_preferences;
ALTER TABLE new_mail_preferences RENAME TO mail_preferences;
`;
