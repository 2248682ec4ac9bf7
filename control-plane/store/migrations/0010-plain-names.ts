/** Renames columns to the terms of docs/dev/glossary.md. */
export const plainNames = `
ALTER TABLE organizations RENAME COLUMN low_since TO exhausted_since;
ALTER TABLE machines RENAME COLUMN is_ahead TO needs_resync;
ALTER TABLE templates RENAME COLUMN env_sealed TO env_encrypted;
ALTER TABLE templates RENAME COLUMN registry_sealed TO registry_encrypted;
ALTER TABLE instances RENAME COLUMN workload_sealed TO workload_encrypted;
ALTER TABLE instances RENAME COLUMN access_token_sealed TO access_token_encrypted;
ALTER TABLE meter_intervals RENAME COLUMN absorbed_ms TO written_off_ms;
ALTER TABLE meter_intervals RENAME COLUMN absorbed_micro TO written_off_micro;
`;
