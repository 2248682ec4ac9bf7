/** Sign-ins of programs without a browser, which a person approves in one (RFC 8628). */
export const deviceCodes = `
CREATE TABLE device_codes (
  id TEXT NOT NULL PRIMARY KEY,
  -- Of the code that only the program has.
  device_hash TEXT NOT NULL UNIQUE,
  -- Of the code that a person types, made with the secret key: eight letters could be found from a plain hash.
  user_hash BLOB NOT NULL UNIQUE,
  -- What the program calls its session.
  name TEXT NOT NULL,
  device TEXT,
  network TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'denied')),
  -- Who has typed the code, and in which session: only there it is approved or denied, and an approval lasts as long as that session.
  user_id TEXT REFERENCES users (id),
  session_id TEXT,
  -- To approve it.
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX device_codes_by_end ON device_codes (expires_at);
CREATE INDEX device_codes_of_network ON device_codes (network, expires_at);
CREATE INDEX device_codes_of_session ON device_codes (session_id) WHERE session_id IS NOT NULL;

-- Wrong codes that were typed: kept for as long as a code lives.
CREATE TABLE device_code_guesses (
  id TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX device_code_guesses_by_end ON device_code_guesses (expires_at);
CREATE INDEX device_code_guesses_of_user ON device_code_guesses (user_id, expires_at);

-- Of a session that a program has asked for; null: a person has signed in.
ALTER TABLE sessions ADD COLUMN name TEXT;
`;
