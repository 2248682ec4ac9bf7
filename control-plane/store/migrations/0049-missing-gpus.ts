/** Adds what a host tells of a GPU that its driver no longer lists, and of one without memory of its own. */
export const missingGpus = `
-- 1: the host has listed the GPU before, and its driver does not list it now.
ALTER TABLE gpus ADD COLUMN missing INTEGER NOT NULL DEFAULT 0 CHECK (missing IN (0, 1));
-- 1: its memory is a part of the memory of the machine.
ALTER TABLE gpus ADD COLUMN shares_memory INTEGER NOT NULL DEFAULT 0 CHECK (shares_memory IN (0, 1));
`;
