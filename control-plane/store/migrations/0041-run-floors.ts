/** Before when no run can have begun, whatever its host says. */
export const runFloors = `
-- When the newest command that can start a run was recorded; null: before this release.
ALTER TABLE instances ADD COLUMN run_not_before INTEGER;
-- The same, or the end of what the run before is known to have lasted.
ALTER TABLE meter_intervals ADD COLUMN run_not_before INTEGER;
`;
