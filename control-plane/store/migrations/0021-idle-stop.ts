/** Stopping an instance that is idle. */
export const idleStop = `
ALTER TABLE instances ADD COLUMN idle_stop_minutes INTEGER;
-- The span in which it was idle without a gap, and when it will be stopped for it: its renter knows that time.
ALTER TABLE instances ADD COLUMN idle_from INTEGER;
ALTER TABLE instances ADD COLUMN idle_to INTEGER;
ALTER TABLE instances ADD COLUMN idle_stops_at INTEGER;
`;
