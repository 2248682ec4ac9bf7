/** Statements that may read many rows or sort them, by how their text begins or what it contains, and why. */
export const ALLOWED: readonly { statement: RegExp; because: string }[] = [
  {
    statement: /"instances"."organization_id" = \? .*order by "instances"."created_at" desc, "instances"."id"/,
    because: 'sorts what an organization deployed in the same millisecond',
  },
  { statement: /from "users" where "email" not like/, because: 'leaves out the few users that were removed' },
  { statement: /from "memberships" inner join "organizations"/, because: 'a user belongs to 20 organizations at most' },
  { statement: /from "invites" where "organization_id"/, because: 'an organization has 100 open invites at most' },
  {
    statement: /from "templates" where "organization_id" = \? and .* order by "created_at" desc/,
    because: 'an organization has 200 active templates at most',
  },
  { statement: /(from|update) "issuers"/, because: 'an installation has 100 issuers at most' },
  { statement: /from "ssh_keys" where "user_id"/, because: 'a user has 100 keys at most' },
  { statement: /from "slow_images" where "organization_id"/, because: 'the oldest of an organization are deleted' },
  { statement: /from "meter_intervals" as "interval" inner join/, because: 'sorts intervals that are not settled yet' },
  { statement: /from "recent_entries" where "organization_id" in/, because: 'entries older than a day are deleted' },
  {
    statement: /^update "recent_entries" set "at"/,
    because: 'once after a step of the clock; older entries are deleted',
  },
  { statement: /^update "meter_intervals" set .*"status" <> 'destroyed'\)/, because: 'once after a step of the clock' },
  { statement: /^update "factor_removals" set "asked_at"/, because: 'once after a step of the clock' },
  {
    statement: /^update "(spend_caps|earlier_limits)" set "(day_from|from_at)"/,
    because: 'once after a step of the clock',
  },
  {
    statement: /^update "instance_schedules" set "look_at" = 0$/,
    because: 'once after a step of the clock, or when Node has other time zones',
  },
  {
    statement: /"after_stop" = 1 and "instance_id"|"instance_id" = \? and "after_stop" = 1/,
    because: 'the ignored stops of one instance',
  },
  { statement: /from "meter_intervals" where "instance_id" = \? and "run_id"/, because: 'the intervals of one run' },
  { statement: /(from|update) "(refunds|disputes)" .*where "payment_id" = \?/, because: 'those of one payment' },
  {
    statement: /"measurements" where "instance_id" = \? and "grain" = \? and "from_at" >/,
    because: 'an instance has 26 rows of minutes and 91 of hours',
  },
  { statement: /"events" where "instance_id"/, because: 'an instance keeps 1,000 events' },
  { statement: /from "gpus" inner join "machines" .*"uuid" in/, because: 'the machines that have had the same GPU' },
  { statement: /from "gpu_claims" inner join "gpus"/, because: 'sorts the GPUs of one machine' },
  { statement: /from "gpu_claims" where "machine_id"/, because: 'the claims on one machine' },
  {
    statement: /^(select|delete|update) .*"gpus" .*where "machine_id" = \?/,
    because: 'a machine has 256 known GPUs at most',
  },
  { statement: /^select max\("sequence"\)/, because: 'reads the index backwards, up to the first match' },
  { statement: /SELECT max\(hour\) FROM transactions/, because: 'reads the last entry of the index' },
  { statement: /from "instance_gpus" where "instance_id"/, because: 'an instance has 64 GPUs at most' },
  {
    statement: /^\s*SELECT (organization_id|charge_days.key) AS spender, day/,
    because: 'one row for each day since the first with use that is not settled, or of a month',
  },
  { statement: /from "organization_days" where .* "day" >=/, because: 'one row for each day that was asked for' },
  {
    statement: /from "charge_days" where .* group by "key"/,
    because: 'one row for each day that was asked for, of the 50 keys of a slice',
  },
  {
    statement: /"(second_factors|factor_requests)" .*where "(kind|secret_encrypted)"/,
    because: 'once, when the secret key is lost; requests last ten minutes',
  },
  { statement: /^delete from "mails" where "user_id"/, because: 'the mails of one user in a week' },
  { statement: /from "quarantine"/, because: 'workloads that wait for an operator; each host has few' },
  {
    statement: /from "templates" where "deactivated_at" is null and \(?"visib/,
    because: 'the catalogue, sorted by name',
  },
  {
    statement: /from "machines" where "removed_at" is null and "id" in/,
    because: 'sorts the machines that need an act of an operator for one reason',
  },
  {
    statement:
      /from "organizations" where ("id" in \(select "organization_id" from "(disputes|memberships)"|"suspension_look_at" is not null)/,
    because:
      'sorts the organizations with an open dispute, whose last admin is refused, or that are suspended and still have something',
  },
  {
    statement: /^select count\(\*\) as "count" from "organizations"/,
    because: 'counts entries of an index: 1 ms for 100,000',
  },
  {
    statement: /from "commands" inner join "machines" .* order by "commands"."created_at" limit/,
    because: 'sorts commands that have been open for fifteen minutes, for an operator',
  },
  {
    statement: /from "machine_days" where "day" = \?$/,
    because: 'one row for each machine that was charged for on a day',
  },
  { statement: /^select distinct "agent_version" from "machines"/, because: 'the machines that are not removed' },
  {
    statement: /^update "offers" set "gpu_model"/,
    because: 'the offers of one machine, when its GPUs change; only operators make offers',
  },
  { statement: /^select distinct "machine_id" from "commands"/, because: 'the hosts of open commands' },
  { statement: /group by "(status|kind)"$/, because: 'groups what is live, for /metrics' },
  { statement: /^select count\(\*\) as "count" from "instances" where "status" = \?/, because: 'once, at the start' },
  {
    statement: /"webhook_deliveries" where "endpoint_id" = \?/,
    because: 'an endpoint keeps 2,000 deliveries, and has about 1,000 pending ones at most',
  },
  {
    statement: /^select \* from "webhook_endpoints"$/,
    because: 'a command of the operator, while no daemon runs',
  },
  { statement: /^delete from "webhook_endpoints"/, because: 'looks for deliveries that would stay: there is none' },
  { statement: /_encrypted" (AS sealed|= \?)/, because: 'a command of the operator, while no daemon runs' },
];
