/** Schedules of instances: when each is started and stopped. */
export const schedules = `
CREATE TABLE instance_schedules (
  instance_id TEXT NOT NULL PRIMARY KEY REFERENCES instances (id),
  -- A name of the IANA database.
  time_zone TEXT NOT NULL,
  -- A JSON list.
  entries TEXT NOT NULL,
  -- The first action that was not dealt with is due.
  next_at INTEGER NOT NULL,
  -- When the worker looks at it next: later than next_at while it waits for something.
  look_at INTEGER NOT NULL,
  -- The start that was recorded last, while its host has not answered.
  start_command TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX instance_schedules_to_look_at ON instance_schedules (look_at);
`;
