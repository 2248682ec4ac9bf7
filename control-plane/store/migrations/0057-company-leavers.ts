/**
 * Lets operators limit the sessions that a company's sign-in opens, and records whom a company has refused as unknown or disabled.
 */
export const companyLeavers = `
-- How long a session lasts that the issuer opens; null: as long as any other.
ALTER TABLE issuers ADD COLUMN session_hours INTEGER CHECK (session_hours BETWEEN 1 AND 720);
-- Whether such a session is renewed without a question to its user, while the issuer still signs in the user.
ALTER TABLE issuers ADD COLUMN renews_sessions INTEGER NOT NULL DEFAULT 0 CHECK (renews_sessions IN (0, 1));

-- The address of the issuer that has opened the session, also through another session; null: none, or the session is older than this column.
ALTER TABLE sessions ADD COLUMN issuer TEXT;
-- When the issuer has last said who the user is.
ALTER TABLE sessions ADD COLUMN vouched_at INTEGER;
-- The end that no use moves; null: none.
ALTER TABLE sessions ADD COLUMN ends_at INTEGER;

-- The address of the issuer at which a sign-in has begun that waits for its second factor.
ALTER TABLE factor_requests ADD COLUMN issuer TEXT;

-- When the issuer has refused the account as unknown or disabled; null once it signs in again.
ALTER TABLE identities ADD COLUMN refused_at INTEGER;
-- The organization of the domain that the user has left then, and joins again at the next sign-in.
ALTER TABLE identities ADD COLUMN left_organization_id TEXT;

-- When the company of the member has refused it, although it stays as the last admin.
ALTER TABLE memberships ADD COLUMN refused_at INTEGER;
CREATE INDEX memberships_refused ON memberships (refused_at, organization_id, user_id) WHERE refused_at IS NOT NULL;
`;
