/** Which SSH key an instance accepts. */
export const keyFingerprints = `
-- The fingerprint of the SSH key that its host has put into the workload; null: none, or one of a release that did not keep it.
ALTER TABLE instances ADD COLUMN ssh_key_fingerprint TEXT;
`;
