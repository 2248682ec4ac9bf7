/** What counts for the caps of an API key: the runs that it has caused, and the disks of what it has deployed. */
export const runKeys = `
-- The API key that has caused the last run, by a deploy or a start; null: a session has.
ALTER TABLE instances ADD COLUMN run_key_id TEXT REFERENCES api_keys (id);
UPDATE instances SET run_key_id = api_key_id WHERE api_key_id IS NOT NULL;
CREATE INDEX instances_of_run_key ON instances (run_key_id) WHERE run_key_id IS NOT NULL;

-- The API key for whose caps it counts. It stays when the key is forgotten.
ALTER TABLE meter_intervals ADD COLUMN capped_key_id TEXT;
UPDATE meter_intervals SET capped_key_id = (SELECT api_key_id FROM instances WHERE instances.id = instance_id)
WHERE (closed_at IS NULL OR settled_to < closed_at);

-- The API key that has set it: the runs that it starts count for the key.
ALTER TABLE instance_schedules ADD COLUMN key_id TEXT REFERENCES api_keys (id);
UPDATE instance_schedules SET key_id = (SELECT api_key_id FROM instances WHERE instances.id = instance_id);
CREATE INDEX instance_schedules_of_key ON instance_schedules (key_id) WHERE key_id IS NOT NULL;

-- What counts for the caps of API keys, by the UTC day of use, in days since 1970.
CREATE TABLE key_days (
  api_key_id TEXT NOT NULL,
  day INTEGER NOT NULL,
  micro INTEGER NOT NULL,
  PRIMARY KEY (api_key_id, day)
) STRICT, WITHOUT ROWID;
INSERT INTO key_days
  SELECT key, day, sum(gpu_micro + disk_micro) FROM charge_days WHERE grouped_by = 'api_key' AND key <> '' GROUP BY 1, 2;
`;
