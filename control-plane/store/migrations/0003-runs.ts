/** Adds charging by runs, the GPU time after ignored stops, and how long stopped instances keep their GPUs. */
export const runs = `
-- When the newest provision or start was first sent, and when its renter asked for the end or was told of it; null while it goes
-- on. Nothing outside of this time is charged for a run. Null for instances that are older than these columns.
ALTER TABLE instances ADD COLUMN charge_from INTEGER;
ALTER TABLE instances ADD COLUMN charge_to INTEGER;
-- When SSH has first answered in this run.
ALTER TABLE instances ADD COLUMN ssh_ready_at INTEGER;
-- After so long a stopped instance gives its GPUs back; null: never. As its offer said when it was deployed.
ALTER TABLE offers ADD COLUMN release_stopped_after_ms INTEGER CHECK (release_stopped_after_ms > 0);
ALTER TABLE instances ADD COLUMN release_stopped_after_ms INTEGER;
ALTER TABLE instances ADD COLUMN release_gpus_at INTEGER;
CREATE INDEX instances_to_release ON instances (release_gpus_at) WHERE release_gpus_at IS NOT NULL;
-- Whether it began when a stop had timed out, and how much of it an operator has credited.
ALTER TABLE meter_intervals ADD COLUMN after_stop INTEGER NOT NULL DEFAULT 0 CHECK (after_stop IN (0, 1));
ALTER TABLE meter_intervals ADD COLUMN credited_ms INTEGER NOT NULL DEFAULT 0;
CREATE INDEX meter_intervals_after_stop ON meter_intervals (instance_id) WHERE after_stop = 1;
CREATE INDEX meter_intervals_by_run ON meter_intervals (instance_id, run_id) WHERE run_id IS NOT NULL;
`;
