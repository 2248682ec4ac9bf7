/** Adds the column that says which machine has a GPU: one at most, whatever others report. */
export const ownedGpus = `
-- 1: the GPU belongs to this machine, also while its host does not report it.
ALTER TABLE gpus ADD COLUMN owned INTEGER NOT NULL DEFAULT 0 CHECK (owned IN (0, 1));
-- The machine that operators were last told has this GPU, although this one reports it.
ALTER TABLE gpus ADD COLUMN told_owner TEXT;
UPDATE gpus SET owned = 1 WHERE machine_id = (
  SELECT claimant.machine_id FROM gpus AS claimant JOIN machines ON machines.id = claimant.machine_id
  WHERE claimant.uuid = gpus.uuid AND machines.removed_at IS NULL
  ORDER BY claimant.present DESC, claimant.seen_at, machines.enrolled_at, claimant.machine_id LIMIT 1
);
CREATE UNIQUE INDEX gpus_owned ON gpus (uuid) WHERE owned = 1;
-- What machines report that are removed concerns nobody any more.
UPDATE gpus SET present = 0 WHERE machine_id IN (SELECT id FROM machines WHERE removed_at IS NOT NULL);
CREATE INDEX gpus_disputed ON gpus (uuid, seen_at, machine_id) WHERE present = 1 AND owned = 0;
`;
