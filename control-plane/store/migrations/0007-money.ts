/** Adds daily sums of charges, single refunds and the times of decided disputes. */
export const money = `
-- What the balance did not cover of the millisecond in which it ran out; 0 again once a credit has taken it into account.
ALTER TABLE meter_intervals ADD COLUMN absorbed_micro INTEGER NOT NULL DEFAULT 0 CHECK (absorbed_micro >= 0);

-- What was charged, in micro-dollars, by the UTC day (since 1970) of use. Of charges that are older than these tables, by the day on
-- which they were booked.
CREATE TABLE organization_days (
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  day INTEGER NOT NULL,
  gpu_micro INTEGER NOT NULL,
  disk_micro INTEGER NOT NULL,
  PRIMARY KEY (organization_id, day)
) STRICT, WITHOUT ROWID;
CREATE TABLE machine_days (
  id INTEGER PRIMARY KEY,
  machine_id TEXT NOT NULL REFERENCES machines (id),
  day INTEGER NOT NULL,
  gpu_micro INTEGER NOT NULL,
  disk_micro INTEGER NOT NULL,
  UNIQUE (machine_id, day)
) STRICT;
CREATE INDEX machine_days_by_day ON machine_days (day);
INSERT INTO organization_days (organization_id, day, gpu_micro, disk_micro)
  SELECT organization_id, hour / 86400000, -sum(iif(meter = 'gpu', amount_micro, 0)), -sum(iif(meter = 'disk', amount_micro, 0))
  FROM transactions WHERE kind = 'charge' GROUP BY 1, 2;
INSERT INTO machine_days (machine_id, day, gpu_micro, disk_micro)
  SELECT machine_id, hour / 86400000, -sum(iif(meter = 'gpu', amount_micro, 0)), -sum(iif(meter = 'disk', amount_micro, 0))
  FROM transactions JOIN instances ON instances.id = instance_id WHERE kind = 'charge' GROUP BY 2, 1;

-- Single refunds of payments, for one that has failed is given back.
CREATE TABLE refunds (
  id TEXT PRIMARY KEY,
  payment_id TEXT NOT NULL REFERENCES payments (id),
  state TEXT NOT NULL CHECK (state IN ('made', 'failed')),
  amount_micro INTEGER NOT NULL
) STRICT;
CREATE INDEX refunds_by_payment ON refunds (payment_id);
-- When the provider has told of its decision; a newer decision counts instead.
ALTER TABLE disputes ADD COLUMN decided_at INTEGER;
UPDATE disputes SET decided_at = opened_at WHERE state IN ('won', 'lost');

-- The ledger is read in the order of its rows, newest first, whatever it is filtered by.
DROP INDEX transactions_by_organization;
CREATE INDEX transactions_by_organization ON transactions (organization_id);
CREATE INDEX transactions_by_kind ON transactions (organization_id, kind);
CREATE INDEX transactions_by_instance ON transactions (organization_id, instance_id) WHERE instance_id IS NOT NULL;
`;
