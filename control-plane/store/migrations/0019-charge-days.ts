/**
 * Adds sums of charges by UTC day of use for each instance, template, API key, member and label. Charges that are older than this table
 * count for the day on which they were booked, and for the label that their instance has at the migration.
 */
export const chargeDays = `
CREATE TABLE charge_days (
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  grouped_by TEXT NOT NULL CHECK (grouped_by IN ('api_key', 'instance', 'label', 'member', 'template')),
  -- The id of the instance, template or API key; the label; the \`deployed_by\` of the instance. Empty: no API key, no label.
  key TEXT NOT NULL,
  -- Since 1970.
  day INTEGER NOT NULL,
  -- One of the instances that were charged: its copy of the template says how the template was called then.
  instance_id TEXT NOT NULL,
  gpu_micro INTEGER NOT NULL,
  disk_micro INTEGER NOT NULL,
  PRIMARY KEY (organization_id, grouped_by, key, day)
) STRICT, WITHOUT ROWID;
-- Lists the keys of a range of days in the order of their first day.
CREATE INDEX charge_days_by_day ON charge_days (organization_id, grouped_by, day, key);

${filled('instance', 'instances.id')}
${filled('template', 'template_id')}
${filled('api_key', "coalesce(api_key_id, '')")}
${filled('member', 'deployed_by')}
${filled('label', "coalesce(label, '')")}
`;

function filled(group: string, key: string): string {
  return `INSERT INTO charge_days (organization_id, grouped_by, key, day, instance_id, gpu_micro, disk_micro)
  SELECT transactions.organization_id, '${group}', ${key}, hour / 86400000, max(instance_id),
    -sum(iif(meter = 'gpu', amount_micro, 0)), -sum(iif(meter = 'disk', amount_micro, 0))
  FROM transactions JOIN instances ON instances.id = instance_id WHERE kind = 'charge' GROUP BY 1, 2, 3, 4;`;
}
