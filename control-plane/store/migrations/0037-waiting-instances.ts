/** Operators' lists of instances by status, by error, and of those that wait for their host, each read in the order of the list. */
export const waitingInstances = `
CREATE INDEX instances_live_by_status_and_age ON instances (status, created_at DESC, id) WHERE status <> 'destroyed';
CREATE INDEX instances_with_error ON instances (error_code, created_at DESC, id)
  WHERE status <> 'destroyed' AND error_code IS NOT NULL;

-- When the instance was deployed, which never changes; null for the removal of a workload that has no instance.
ALTER TABLE commands ADD COLUMN instance_created_at INTEGER;
UPDATE commands SET instance_created_at = (
  SELECT created_at FROM instances
  WHERE instances.id = commands.instance_id AND instances.machine_id = commands.machine_id
) WHERE state = 'open';
CREATE INDEX commands_awaited ON commands (instance_created_at DESC, instance_id)
  WHERE state = 'open' AND instance_created_at IS NOT NULL;

-- No statement searches by address.
DROP INDEX machines_by_address;
`;
