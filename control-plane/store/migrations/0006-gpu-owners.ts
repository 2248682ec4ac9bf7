/** Adds the column that decides which machine has a GPU when several report it. */
export const gpuOwners = `
-- Since when the machine has reported it without a break.
ALTER TABLE gpus ADD COLUMN seen_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX gpus_by_uuid ON gpus (uuid);
`;
