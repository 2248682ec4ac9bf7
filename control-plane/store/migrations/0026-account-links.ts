/** Links by mail that reset a password or confirm the address of a new account. */
export const accountLinks = `
-- Requests for addresses without an account, and for new accounts of addresses that have one, are kept alike: nobody may learn which these are.
CREATE TABLE link_requests (
  id TEXT NOT NULL PRIMARY KEY,
  purpose TEXT NOT NULL CHECK (purpose IN ('password_reset', 'sign_up')),
  address TEXT NOT NULL COLLATE NOCASE,
  -- Of a new account.
  name TEXT,
  password_hash TEXT,
  invite_id TEXT,
  -- Whose password it resets.
  user_id TEXT REFERENCES users (id),
  -- The operator who made the link; null: it was asked for by mail.
  made_by TEXT REFERENCES users (id),
  -- Null: there is no link, or not yet.
  token_hash TEXT UNIQUE,
  tries INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  -- When it was decided which mail is sent.
  handled_at INTEGER
) STRICT;
CREATE INDEX link_requests_of_address ON link_requests (address, purpose, created_at);
CREATE INDEX link_requests_of_user ON link_requests (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX link_requests_by_time ON link_requests (purpose, created_at);
CREATE INDEX link_requests_new ON link_requests (created_at) WHERE handled_at IS NULL;
CREATE INDEX link_requests_by_end ON link_requests (expires_at);

-- When the user has proven that the address is theirs; null: never asked.
ALTER TABLE users ADD COLUMN email_verified_at INTEGER;
`;
