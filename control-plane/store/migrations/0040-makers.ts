/**
 * Notes who has made an invitation or an enrollment token, as the logs say it, because these end with the role of their maker. Withdraws the
 * invitations of those who are no admins any more.
 */
export const makers = `
-- Null: an earlier release has not logged it.
ALTER TABLE invites ADD COLUMN made_by TEXT REFERENCES users (id);
UPDATE invites SET made_by = (
  SELECT users.id FROM organization_acts JOIN users ON users.id = organization_acts.actor_id
  WHERE organization_acts.organization_id = invites.organization_id AND organization_acts.at = invites.created_at
    AND organization_acts.action = 'invite.create' AND organization_acts.object = 'invites/' || invites.id
);
DELETE FROM invites WHERE made_by IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM memberships
  WHERE memberships.organization_id = invites.organization_id AND memberships.user_id = invites.made_by
    AND memberships.role = 'admin'
);
CREATE INDEX invites_by_maker ON invites (made_by);

ALTER TABLE enrollment_tokens ADD COLUMN made_by TEXT REFERENCES users (id);
UPDATE enrollment_tokens SET made_by = (
  SELECT users.id FROM audit_log JOIN users ON users.id = audit_log.actor_id
  WHERE audit_log.subject = enrollment_tokens.id AND audit_log.action = 'enrollment_token.create'
);
`;
