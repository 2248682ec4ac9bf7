/** Lists of offers, templates and ignored stops read an index in their order, so that a page costs what its rows cost. */
export const pagedLists = `
-- The model of the machine's first GPU, by which operators filter.
ALTER TABLE offers ADD COLUMN gpu_model TEXT;
UPDATE offers SET gpu_model = (
  SELECT model FROM gpus WHERE gpus.machine_id = offers.machine_id AND present = 1 ORDER BY position, uuid LIMIT 1
);
CREATE INDEX offers_of_machine ON offers (machine_id, created_at DESC, id);
CREATE INDEX offers_of_model ON offers (gpu_model, created_at DESC, id);
CREATE INDEX offers_open_by_age ON offers (created_at DESC, id) WHERE withdrawn_at IS NULL;
CREATE INDEX offers_open_of_model ON offers (gpu_model, created_at DESC, id) WHERE withdrawn_at IS NULL;
CREATE INDEX offers_withdrawn ON offers (created_at DESC, id) WHERE withdrawn_at IS NOT NULL;
-- Made anew, because of two equal indexes SQLite chooses the newer one.
DROP INDEX offers_open;
CREATE INDEX offers_open ON offers (machine_id, created_at) WHERE withdrawn_at IS NULL;

DROP INDEX templates_of_organization;
CREATE INDEX templates_of_organization ON templates (organization_id, visibility, name, id) WHERE deactivated_at IS NULL;
DROP INDEX templates_shared;
CREATE INDEX templates_shared ON templates (visibility, name, id)
  WHERE deactivated_at IS NULL AND visibility <> 'organization';

CREATE INDEX meter_intervals_not_credited ON meter_intervals (instance_id)
  WHERE after_stop = 1 AND credited_ms < settled_to - opened_at - written_off_ms;
CREATE INDEX meter_intervals_ignored ON meter_intervals (instance_id) WHERE after_stop = 1 AND closed_at IS NULL;
`;
