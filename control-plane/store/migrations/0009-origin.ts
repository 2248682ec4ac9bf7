/** Adds the origin of a workload in quarantine, as its host reports it: encrypted by the control plane. */
export const origin = `
ALTER TABLE quarantine ADD COLUMN origin TEXT;
`;
