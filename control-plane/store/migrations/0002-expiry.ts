/** Adds the network of a session, and indexes that find expired rows. */
export const expiry = `
-- The network of the address that it was opened from; null for sessions that are older than this column.
ALTER TABLE sessions ADD COLUMN network TEXT;
CREATE INDEX sessions_by_expiry ON sessions (expires_at);
CREATE INDEX invites_by_expiry ON invites (expires_at);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);
`;
