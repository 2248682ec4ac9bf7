/** Bounds what people mail to strangers, lets addresses end that, and lets no mail wait for less urgent ones or for those of one sender. */
export const strangers = `
-- Mails of the last day to addresses that have not asked for them. What they were about can be gone.
CREATE TABLE mails_to_strangers (
  id TEXT NOT NULL PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('invite', 'sign_up')),
  -- Null: nobody was signed in.
  user_id TEXT REFERENCES users (id),
  -- Whether the sender had a confirmed address and had paid.
  is_known INTEGER NOT NULL CHECK (is_known IN (0, 1)),
  -- In lower case.
  address TEXT NOT NULL,
  -- Null: it is not known.
  network TEXT,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX mails_to_strangers_by_age ON mails_to_strangers (created_at);
CREATE INDEX mails_to_strangers_of_user ON mails_to_strangers (user_id, created_at) WHERE user_id IS NOT NULL;
CREATE INDEX mails_to_strangers_to ON mails_to_strangers (address, kind, created_at);
CREATE INDEX mails_to_strangers_from ON mails_to_strangers (network, kind, created_at) WHERE network IS NOT NULL;

-- Addresses that get no invitations by mail. In lower case.
CREATE TABLE refused_invite_mails (
  address TEXT NOT NULL PRIMARY KEY,
  since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The lower, the sooner.
ALTER TABLE mails ADD COLUMN urgency INTEGER NOT NULL DEFAULT 3;
-- Whose act or organization it is of; null: no one's.
ALTER TABLE mails ADD COLUMN sender TEXT;
-- In which order mails of the same urgency are sent.
ALTER TABLE mails ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
UPDATE mails SET turn = created_at, urgency = CASE
    WHEN kind = 'invite' THEN 3
    WHEN queue LIKE '%/others' THEN 1
    ELSE 0
  END WHERE finished_at IS NULL;
DROP INDEX mails_queued;
CREATE INDEX mails_queued ON mails (urgency, turn, next_attempt_at) WHERE state = 'queued';
CREATE INDEX mails_open_of_sender ON mails (sender, turn) WHERE finished_at IS NULL AND sender IS NOT NULL;
-- The limit that these were for is gone.
DROP INDEX mails_invites;
DROP INDEX mails_invites_to;
CREATE INDEX invites_to ON invites (email, created_at, id);

-- Who has made an organization, because one that was left counts for a day. Null: it is older.
ALTER TABLE organizations ADD COLUMN founded_by TEXT REFERENCES users (id);
CREATE INDEX organizations_founded ON organizations (founded_by, created_at) WHERE founded_by IS NOT NULL;
`;
