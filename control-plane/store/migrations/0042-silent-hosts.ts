/** The meters of disks pause while their host is silent: how long it has been silent, and whether they are paused. */
export const silentHosts = `
ALTER TABLE machines ADD COLUMN silent_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE machines ADD COLUMN disks_paused INTEGER NOT NULL DEFAULT 0;
-- A machine that is lost has no disk that is metered, until its host says hello.
UPDATE machines SET disks_paused = 1 WHERE lost_at IS NOT NULL;
CREATE INDEX meter_intervals_of_disks ON meter_intervals (machine_id)
  WHERE meter = 'disk' AND (closed_at IS NULL OR settled_to < closed_at);
`;
