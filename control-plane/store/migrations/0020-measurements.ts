/** What instances use, as their hosts measure it, and up to which step their renters know that a disk fills. */
export const measurements = `
CREATE TABLE measurements (
  instance_id TEXT NOT NULL REFERENCES instances (id),
  grain TEXT NOT NULL CHECK (grain IN ('minute', 'hour')),
  -- The hour of the minutes, or the UTC day of the hours.
  from_at INTEGER NOT NULL,
  -- Packed: see domain/measurement.ts.
  data BLOB NOT NULL,
  PRIMARY KEY (instance_id, grain, from_at)
) STRICT;
CREATE INDEX measurements_by_age ON measurements (grain, from_at);

ALTER TABLE instances ADD COLUMN disk_told_percent INTEGER CHECK (disk_told_percent IN (90, 98));
`;
