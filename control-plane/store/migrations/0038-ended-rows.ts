/** Templates that nobody can deploy any more, and API keys that have ended, are deleted where no instance names them. */
export const endedRows = `
-- Those that are still whole: what is emptied has no hash.
CREATE INDEX templates_to_empty ON templates (deactivated_at) WHERE deactivated_at IS NOT NULL AND hash_id <> '';
CREATE INDEX api_keys_ended ON api_keys (revoked_at, id) WHERE revoked_at IS NOT NULL;
-- For who looks whether an instance names a template or a key, as SQLite does for each that is deleted.
CREATE INDEX instances_of_template ON instances (template_id);
CREATE INDEX instances_of_api_key ON instances (api_key_id) WHERE api_key_id IS NOT NULL;
CREATE INDEX spend_caps_of_api_key ON spend_caps (api_key_id) WHERE api_key_id IS NOT NULL;
`;
