/** Counts slow pulls for each machine. What was known before holds nothing back any more, because its machine is not known. */
export const slowMachines = `
DROP TABLE slow_images;
CREATE TABLE slow_images (
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  -- What the failures are counted for: a repository of Docker Hub, or another registry's domain or network.
  source TEXT NOT NULL,
  machine_id TEXT NOT NULL REFERENCES machines (id),
  -- In a row.
  failures INTEGER NOT NULL CHECK (failures > 0),
  failed_at INTEGER NOT NULL,
  retry_at INTEGER NOT NULL CHECK (retry_at > failed_at),
  PRIMARY KEY (organization_id, source, machine_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX slow_images_by_retry ON slow_images (retry_at);
`;
