/** Whose a workload in quarantine is, as its host repeats it: sealed by the control plane. */
export const origin = `
ALTER TABLE quarantine ADD COLUMN origin TEXT;
`;
