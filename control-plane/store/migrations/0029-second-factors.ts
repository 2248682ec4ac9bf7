/** Second factors of users, what they have begun with them, and who demands them. */
export const secondFactors = `
-- When its user last gave a password, a second factor or the sign-in of a company in this session; null: not since this column exists,
-- or not since a second factor was added in another session.
ALTER TABLE sessions ADD COLUMN proven_at INTEGER;
-- When a second factor was last given in this session; null: never, or the user has none any more.
ALTER TABLE sessions ADD COLUMN factor_at INTEGER;

CREATE TABLE second_factors (
  id TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id),
  kind TEXT NOT NULL CHECK (kind IN ('totp', 'passkey')),
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER,
  -- Of an authenticator app: the shared secret, and the time step of the newest code that was used.
  secret_encrypted BLOB,
  last_step INTEGER,
  -- Of a passkey: its id and its public key as the browser has given them, and how often it has signed, if it counts.
  credential_id TEXT UNIQUE,
  public_key BLOB,
  counter INTEGER,
  CHECK ((kind = 'totp') = (secret_encrypted IS NOT NULL AND last_step IS NOT NULL)),
  CHECK ((kind = 'passkey') = (credential_id IS NOT NULL AND public_key IS NOT NULL AND counter IS NOT NULL))
) STRICT;
CREATE INDEX second_factors_of_user ON second_factors (user_id, created_at DESC, id);

-- A row is deleted once its code was used.
CREATE TABLE recovery_codes (
  user_id TEXT NOT NULL REFERENCES users (id),
  code_hash TEXT NOT NULL,
  PRIMARY KEY (user_id, code_hash)
) STRICT, WITHOUT ROWID;

-- What a user has begun and a second factor completes. One row for each challenge or token; each is used once.
CREATE TABLE factor_requests (
  id TEXT NOT NULL PRIMARY KEY,
  purpose TEXT NOT NULL CHECK (purpose IN ('sign_in', 'proof', 'add_totp', 'add_passkey')),
  user_id TEXT NOT NULL REFERENCES users (id),
  -- The session that has begun it; null: a sign-in, which has none yet.
  session_id TEXT,
  -- Of a sign-in: what the second request names it by.
  token_hash TEXT UNIQUE,
  -- What a passkey signs.
  challenge TEXT,
  -- Of an authenticator app that is added: the shared secret.
  secret_encrypted BLOB,
  tries INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX factor_requests_of_user ON factor_requests (user_id, purpose, created_at);
CREATE INDEX factor_requests_by_end ON factor_requests (expires_at);

-- Wrong codes of a user since the first of them, for an hour.
CREATE TABLE factor_guesses (
  user_id TEXT NOT NULL PRIMARY KEY REFERENCES users (id),
  wrong INTEGER NOT NULL,
  since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX factor_guesses_by_age ON factor_guesses (since);

-- Removals of a user's factors that an operator has asked for and that have not taken effect.
CREATE TABLE factor_removals (
  user_id TEXT NOT NULL PRIMARY KEY REFERENCES users (id),
  asked_by TEXT NOT NULL REFERENCES users (id),
  reason TEXT NOT NULL,
  asked_at INTEGER NOT NULL,
  effective_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX factor_removals_by_effect ON factor_removals (effective_at);

-- Since when the organization demands a second factor of its members; null: it does not.
ALTER TABLE organizations ADD COLUMN second_factor_since INTEGER;
`;
