/**
 * Makes each cap a row of its own. Recreates the earlier limits without the CHECK of their kinds: a cap on another period is one more value.
 */
export const capRows = `
CREATE TABLE new_spend_caps (
  -- The organization, or the API key.
  owner_id TEXT NOT NULL,
  -- One of CAP_KINDS.
  kind TEXT NOT NULL,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  -- Null: the cap of the organization.
  api_key_id TEXT REFERENCES api_keys (id),
  amount_micro INTEGER NOT NULL,
  -- When the caps of the owner were set last.
  set_at INTEGER NOT NULL,
  -- The cap concerns no time before.
  from_at INTEGER NOT NULL,
  -- The percent of which the organization was told last, and the first day (in days since 1970) of the period that it was told of.
  told_day INTEGER,
  told_percent INTEGER,
  PRIMARY KEY (owner_id, kind)
) STRICT, WITHOUT ROWID;
INSERT INTO new_spend_caps
  SELECT id, 'burn_per_hour', organization_id, api_key_id, burn_per_hour_micro, set_at, set_at, NULL, NULL
  FROM spend_caps WHERE burn_per_hour_micro IS NOT NULL
  UNION ALL
  SELECT id, 'day', organization_id, api_key_id, day_micro, set_at, day_from, told_day, told_day_percent
  FROM spend_caps WHERE day_micro IS NOT NULL
  UNION ALL
  SELECT id, 'month', organization_id, api_key_id, month_micro, set_at, month_from, told_month, told_month_percent
  FROM spend_caps WHERE month_micro IS NOT NULL;
DROP TABLE spend_caps;
ALTER TABLE new_spend_caps RENAME TO spend_caps;
CREATE INDEX spend_caps_of_organization ON spend_caps (organization_id);
CREATE INDEX spend_caps_of_api_key ON spend_caps (api_key_id) WHERE api_key_id IS NOT NULL;

CREATE TABLE new_earlier_limits (
  id INTEGER NOT NULL PRIMARY KEY,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  -- The instance; for a cap the organization, or the API key.
  limited_id TEXT NOT NULL,
  -- stop_at, max_charge, or one of PERIODS.
  kind TEXT NOT NULL,
  -- Null: a time.
  limit_micro INTEGER,
  -- It ended GPU time from then on, and until then.
  from_at INTEGER NOT NULL,
  until_at INTEGER NOT NULL,
  -- What was charged, of the time before until_at, in the day or month in which that is.
  spent_micro INTEGER NOT NULL
) STRICT;
INSERT INTO new_earlier_limits SELECT * FROM earlier_limits;
DROP TABLE earlier_limits;
ALTER TABLE new_earlier_limits RENAME TO earlier_limits;
CREATE INDEX earlier_limits_of ON earlier_limits (organization_id, limited_id);
`;
