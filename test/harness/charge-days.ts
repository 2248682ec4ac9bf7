/** The days on which the sums of a group differ from the day of the organization, in a store whose charges are all of this release. */
export const DAYS_THAT_DIFFER = `
  WITH groups (name) AS (VALUES ('api_key'), ('instance'), ('label'), ('member'), ('template')),
  summed AS (
    SELECT organization_id, grouped_by, day, sum(gpu_micro) AS gpu_micro, sum(disk_micro) AS disk_micro
    FROM charge_days GROUP BY 1, 2, 3),
  due AS (SELECT organization_id, name, day, gpu_micro, disk_micro FROM organization_days, groups)
  SELECT * FROM (SELECT * FROM summed EXCEPT SELECT * FROM due)
  UNION ALL SELECT * FROM (SELECT * FROM due EXCEPT SELECT * FROM summed)`;

/** The instances that have not spent the sum of their days. */
export const INSTANCES_THAT_DIFFER = `
  SELECT id, spend_micro FROM instances WHERE spend_micro <> coalesce(
    (SELECT sum(gpu_micro + disk_micro) FROM charge_days
      WHERE charge_days.organization_id = instances.organization_id AND grouped_by = 'instance' AND key = instances.id), 0)`;
