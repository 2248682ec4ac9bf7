/**
 * Webhook endpoints of organizations, and their deliveries. The table of events is the outbox: an endpoint keeps the number of the last
 * event that was turned into a delivery.
 */
export const webhooks = `
CREATE TABLE webhook_endpoints (
  id TEXT NOT NULL PRIMARY KEY,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  url TEXT NOT NULL,
  description TEXT,
  -- A JSON list; NULL: every type.
  types TEXT,
  -- NULL: events of every instance, and all others.
  instance_id TEXT REFERENCES instances (id),
  secret_encrypted BLOB NOT NULL,
  -- Signs beside the present secret until previous_secret_until.
  previous_secret_encrypted BLOB,
  previous_secret_until INTEGER,
  -- The number of the last event that was turned into a delivery, and up to where expired events are in the log.
  delivered_to INTEGER NOT NULL,
  missed_to INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  disabled_at INTEGER,
  disabled_reason TEXT CHECK (disabled_reason IN ('renter', 'gone', 'failing', 'secret_lost')),
  -- Since when no attempt has succeeded, how many have failed since, and until when the endpoint gets nothing.
  failing_since INTEGER,
  failures INTEGER NOT NULL,
  paused_until INTEGER,
  -- When one of its deliveries is due; NULL: none is pending.
  next_attempt_at INTEGER
) STRICT;
CREATE INDEX webhook_endpoints_of_organization ON webhook_endpoints (organization_id, created_at, id);
CREATE INDEX webhook_endpoints_enabled ON webhook_endpoints (organization_id) WHERE disabled_at IS NULL;
CREATE INDEX webhook_endpoints_due ON webhook_endpoints (next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX webhook_endpoints_rotated ON webhook_endpoints (previous_secret_until) WHERE previous_secret_until IS NOT NULL;

CREATE TABLE webhook_deliveries (
  id TEXT NOT NULL PRIMARY KEY,
  endpoint_id TEXT NOT NULL REFERENCES webhook_endpoints (id),
  kind TEXT NOT NULL CHECK (kind IN ('event', 'test', 'gap')),
  -- The event, in the stream of the endpoint's organization; NULL: none. Of a gap: the last event that had expired.
  epoch INTEGER,
  number INTEGER,
  type TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
  attempts INTEGER NOT NULL,
  next_attempt_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  finished_at INTEGER,
  last_status INTEGER,
  last_error TEXT,
  last_answer TEXT
) STRICT;
CREATE INDEX webhook_deliveries_log ON webhook_deliveries (endpoint_id, created_at, id);
CREATE UNIQUE INDEX webhook_deliveries_of_event ON webhook_deliveries (endpoint_id, number) WHERE kind = 'event';
CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (endpoint_id, next_attempt_at) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_finished ON webhook_deliveries (finished_at) WHERE finished_at IS NOT NULL;
`;
