/** Every list, count and search reads an index, so that its cost does not grow with what is over. */
export const boundedReads = `
CREATE INDEX organizations_by_age ON organizations (created_at DESC, id);
CREATE INDEX organizations_without_balance ON organizations (id) WHERE balance_micro <= 0;
CREATE INDEX users_by_age ON users (created_at DESC, id);
CREATE INDEX memberships_by_organization ON memberships (organization_id, joined_at, user_id);
CREATE INDEX enrollment_tokens_by_age ON enrollment_tokens (created_at DESC, id);
CREATE INDEX machines_present ON machines (enrolled_at DESC, id) WHERE removed_at IS NULL;
CREATE INDEX gpus_present ON gpus (machine_id, position, uuid) WHERE present = 1;
CREATE INDEX offers_by_age ON offers (created_at DESC, id);
DROP INDEX offers_by_machine;
CREATE INDEX offers_open ON offers (machine_id, created_at) WHERE withdrawn_at IS NULL;
CREATE INDEX templates_of_organization ON templates (organization_id, visibility) WHERE deactivated_at IS NULL;
CREATE INDEX templates_shared ON templates (visibility) WHERE deactivated_at IS NULL AND visibility <> 'organization';
CREATE INDEX api_keys_active ON api_keys (organization_id, created_at) WHERE revoked_at IS NULL;
CREATE INDEX api_keys_of_creator ON api_keys (creator_id) WHERE revoked_at IS NULL;
CREATE INDEX instances_live_by_age ON instances (created_at DESC, id) WHERE status <> 'destroyed';
DROP INDEX instances_by_status;
CREATE INDEX instances_live_by_status ON instances (status, progress_at) WHERE status <> 'destroyed';
DROP INDEX instances_by_organization_status;
DROP INDEX instances_by_machine_status;
DROP INDEX instances_live_by_machine;
CREATE INDEX instances_live_by_machine ON instances (machine_id, created_at DESC, id) WHERE status <> 'destroyed';
DROP INDEX commands_of_machine;
CREATE INDEX commands_of_machine ON commands (machine_id, next_send_at) WHERE state = 'open';
CREATE INDEX meter_intervals_unreported ON meter_intervals (instance_id, id)
  WHERE (meter = 'gpu' AND (closed_at IS NULL OR attested_to < closed_at));
CREATE INDEX disputes_of_organization ON disputes (organization_id, opened_at);
CREATE INDEX quarantine_by_age ON quarantine (found_at);
`;
