/** Suspended organizations, notices to the renters of a machine, and what was done in an organization. */
export const operatorsAct = `
-- Null: the organization is not suspended.
ALTER TABLE organizations ADD COLUMN suspended_at INTEGER;
ALTER TABLE organizations ADD COLUMN suspended_reason TEXT;
ALTER TABLE organizations ADD COLUMN suspended_keep_days INTEGER;
ALTER TABLE organizations ADD COLUMN disks_kept_until INTEGER;
-- The last warning that disks of a suspended organization will be gone, in hours before; null: none.
ALTER TABLE organizations ADD COLUMN suspension_told_hours INTEGER;
-- When the worker looks at a suspended organization next; null: it has nothing that could run or be destroyed.
ALTER TABLE organizations ADD COLUMN suspension_look_at INTEGER;
CREATE INDEX organizations_suspended ON organizations (suspension_look_at) WHERE suspension_look_at IS NOT NULL;

-- When an operator last told the renters of a machine something.
ALTER TABLE machines ADD COLUMN noticed_at INTEGER;

CREATE INDEX users_operators ON users (id) WHERE is_operator = 1;

CREATE TABLE organization_acts (
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  -- The oldest rows of an organization are deleted.
  number INTEGER NOT NULL,
  at INTEGER NOT NULL,
  actor_kind TEXT NOT NULL CHECK (actor_kind IN ('user', 'api_key', 'operator', 'system')),
  -- Null: an operator, or the control plane itself.
  actor_id TEXT,
  actor_name TEXT NOT NULL,
  -- Null: not by a request, or its address is unknown.
  address TEXT,
  action TEXT NOT NULL,
  -- The path of what it was done to.
  object TEXT NOT NULL,
  reason TEXT,
  PRIMARY KEY (organization_id, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX organization_acts_by_age ON organization_acts (at);

DROP INDEX events_for_mail;
CREATE INDEX events_for_mail ON events (stream, number)
  WHERE type IN ('billing.balance_low', 'billing.balance_exhausted', 'billing.disks_at_risk', 'billing.paid', 'billing.payment_failed', 'billing.spend_cap', 'organization.suspended', 'organization.restored', 'organization.disks_at_risk', 'machine.notice');
`;
