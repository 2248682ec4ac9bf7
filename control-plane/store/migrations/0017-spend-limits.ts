/** Limits of an instance, and caps on what an organization or an API key spends. */
export const spendLimits = `
ALTER TABLE instances ADD COLUMN stop_at INTEGER;
ALTER TABLE instances ADD COLUMN max_charge_micro INTEGER;
-- Null: stop.
ALTER TABLE instances ADD COLUMN on_limit TEXT CHECK (on_limit IN ('stop', 'destroy'));
-- max_charge_micro concerns no time before.
ALTER TABLE instances ADD COLUMN max_charge_from INTEGER;
-- The percent of max_charge_micro of which the renter was told last.
ALTER TABLE instances ADD COLUMN charge_told_percent INTEGER;

CREATE TABLE spend_caps (
  -- Of the organization, or of the API key.
  id TEXT NOT NULL PRIMARY KEY,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  -- Null: the cap of the organization.
  api_key_id TEXT REFERENCES api_keys (id),
  burn_per_hour_micro INTEGER,
  day_micro INTEGER,
  month_micro INTEGER,
  set_at INTEGER NOT NULL,
  -- The caps on days and months concern no time before.
  day_from INTEGER NOT NULL,
  month_from INTEGER NOT NULL,
  -- The percent of which the organization was told last, and the first day (in days since 1970) of the day or month that it was told of.
  told_day INTEGER,
  told_day_percent INTEGER,
  told_month INTEGER,
  told_month_percent INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX spend_caps_of_organization ON spend_caps (organization_id);
`;
