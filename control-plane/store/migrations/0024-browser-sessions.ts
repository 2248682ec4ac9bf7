/** What a session is listed with, and the names of machines at which browsers would show a cookie to instances. */
export const browserSessions = `
-- Words from a closed list: see domain/device.ts. Null: unknown.
ALTER TABLE sessions ADD COLUMN device TEXT;
-- Null: not used since it was opened, or not since this column exists.
ALTER TABLE sessions ADD COLUMN last_used_at INTEGER;
ALTER TABLE sessions ADD COLUMN last_network TEXT;
DROP INDEX sessions_by_user;
CREATE INDEX sessions_of_user ON sessions (user_id, created_at DESC, id);

-- public_address in the form in which browsers keep cookies by it: see domain/browser-host.ts.
ALTER TABLE machines ADD COLUMN browser_host TEXT NOT NULL DEFAULT '';
UPDATE machines SET browser_host = lower(public_address);
CREATE INDEX machines_by_browser_host ON machines (browser_host);
`;
