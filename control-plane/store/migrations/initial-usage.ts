/** The second half of 0001: what instances hold, what is metered and paid, and what operators act on. */
export const initialUsage = `
-- Which deploy an Idempotency-Key stands for; a refusal is not remembered.
CREATE TABLE idempotency_keys (
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  key TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  instance_id TEXT NOT NULL REFERENCES instances (id),
  created_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, key)
) STRICT, WITHOUT ROWID;

-- The GPUs that an instance was given, which it keeps in mind when they are released.
CREATE TABLE instance_gpus (
  instance_id TEXT NOT NULL REFERENCES instances (id),
  gpu_uuid TEXT NOT NULL,
  PRIMARY KEY (instance_id, gpu_uuid)
) STRICT, WITHOUT ROWID;

-- Who holds a GPU now. The primary key is what makes selling one twice impossible.
CREATE TABLE gpu_claims (
  machine_id TEXT NOT NULL,
  gpu_uuid TEXT NOT NULL,
  instance_id TEXT NOT NULL REFERENCES instances (id),
  claimed_at INTEGER NOT NULL,
  PRIMARY KEY (machine_id, gpu_uuid),
  FOREIGN KEY (machine_id, gpu_uuid) REFERENCES gpus (machine_id, uuid)
) STRICT, WITHOUT ROWID;
CREATE INDEX gpu_claims_by_instance ON gpu_claims (instance_id);

CREATE TABLE commands (
  id TEXT PRIMARY KEY,
  -- An instance, or what a workload in quarantine is taken for.
  instance_id TEXT NOT NULL,
  machine_id TEXT NOT NULL REFERENCES machines (id),
  sequence INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('provision', 'start', 'stop', 'release', 'destroy')),
  state TEXT NOT NULL CHECK (state IN ('open', 'closed', 'done', 'refused', 'failed', 'stale')),
  created_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  next_send_at INTEGER NOT NULL,
  accepted_at INTEGER,
  finished_at INTEGER,
  code TEXT,
  message TEXT,
  -- The request of the API that asked for it.
  request_id TEXT,
  UNIQUE (machine_id, instance_id, sequence)
) STRICT;
CREATE INDEX commands_to_send ON commands (next_send_at) WHERE state = 'open';
CREATE INDEX commands_of_machine ON commands (machine_id) WHERE state = 'open';

CREATE TABLE instance_events (
  id INTEGER PRIMARY KEY,
  instance_id TEXT NOT NULL REFERENCES instances (id),
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  message TEXT NOT NULL
) STRICT;
CREATE INDEX instance_events_by_instance ON instance_events (instance_id, id);

-- When something of an instance was metered: GPU time while running, disk while stopped. Disjoint for each instance.
CREATE TABLE meter_intervals (
  id INTEGER PRIMARY KEY,
  instance_id TEXT NOT NULL REFERENCES instances (id),
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  machine_id TEXT NOT NULL REFERENCES machines (id),
  meter TEXT NOT NULL CHECK (meter IN ('gpu', 'disk')),
  opened_at INTEGER NOT NULL,
  closed_at INTEGER CHECK (closed_at >= opened_at),
  -- How far it is certain: GPU time by the host's word, disk by what was settled.
  attested_to INTEGER NOT NULL CHECK (attested_to >= opened_at),
  -- How far it was charged, or absorbed.
  settled_to INTEGER NOT NULL CHECK (settled_to BETWEEN opened_at AND attested_to),
  absorbed_ms INTEGER NOT NULL DEFAULT 0,
  -- The run of the workload that was attested, and when it began as far as the control plane can tell.
  run_id TEXT,
  run_began_at INTEGER
) STRICT;
CREATE INDEX meter_intervals_by_instance ON meter_intervals (instance_id, id);
CREATE UNIQUE INDEX meter_intervals_open ON meter_intervals (instance_id) WHERE closed_at IS NULL;
CREATE INDEX meter_intervals_to_attest ON meter_intervals (machine_id)
  WHERE meter = 'gpu' AND (closed_at IS NULL OR attested_to < closed_at);
CREATE INDEX meter_intervals_to_settle ON meter_intervals (organization_id)
  WHERE closed_at IS NULL OR settled_to < closed_at;

-- The ledger. Amounts add to the balance: credits are positive, charges negative.
CREATE TABLE transactions (
  id TEXT PRIMARY KEY,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  kind TEXT NOT NULL CHECK (kind IN ('credit', 'payment', 'refund', 'dispute', 'charge')),
  amount_micro INTEGER NOT NULL,
  -- What a charge is for, and the UTC hour in which it was booked.
  instance_id TEXT REFERENCES instances (id),
  meter TEXT CHECK (meter IN ('gpu', 'disk')),
  hour INTEGER,
  reason TEXT,
  author_id TEXT REFERENCES users (id),
  created_at INTEGER NOT NULL,
  UNIQUE (instance_id, meter, hour),
  CHECK ((kind = 'charge') = (instance_id IS NOT NULL AND meter IS NOT NULL AND hour IS NOT NULL))
) STRICT;
CREATE INDEX transactions_by_organization ON transactions (organization_id, created_at);

-- What has moved a balance since a time of which something is still to be settled, so that this is held against the balance of
-- then. Unlike the ledger's, these times follow the wall clock when it is set.
CREATE TABLE recent_entries (
  id INTEGER PRIMARY KEY,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  at INTEGER NOT NULL,
  amount_micro INTEGER NOT NULL
) STRICT;
CREATE INDEX recent_entries_by_organization ON recent_entries (organization_id, at);

-- What a payment provider has told of a payment, and what of it the ledger has.
CREATE TABLE payments (
  id TEXT PRIMARY KEY,
  -- Null until it was told who has paid.
  organization_id TEXT REFERENCES organizations (id),
  paid_micro INTEGER NOT NULL,
  refunded_micro INTEGER NOT NULL,
  credited_micro INTEGER NOT NULL,
  refund_debited_micro INTEGER NOT NULL,
  dispute_debited_micro INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

-- While one is open, the payments of its organization are frozen. An operator lifts what a provider may still decide.
CREATE TABLE disputes (
  id TEXT PRIMARY KEY,
  organization_id TEXT REFERENCES organizations (id),
  -- Null when an operator has opened it.
  payment_id TEXT REFERENCES payments (id),
  state TEXT NOT NULL CHECK (state IN ('open', 'lifted', 'won', 'lost')),
  amount_micro INTEGER NOT NULL,
  opened_at INTEGER NOT NULL
) STRICT;
CREATE INDEX disputes_by_organization ON disputes (organization_id) WHERE state = 'open';
CREATE INDEX disputes_by_payment ON disputes (payment_id);

-- Workloads that a host has and the store cannot explain. They hold their GPUs; nobody but an operator ends them.
CREATE TABLE quarantine (
  id TEXT PRIMARY KEY,
  machine_id TEXT NOT NULL REFERENCES machines (id),
  -- The instance that the host takes it for.
  instance_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  disk_gb INTEGER NOT NULL,
  -- How the host sees it: JSON.
  observation TEXT NOT NULL,
  found_at INTEGER NOT NULL,
  removal_requested_at INTEGER,
  UNIQUE (machine_id, instance_id)
) STRICT;

CREATE TABLE quarantine_gpus (
  quarantine_id TEXT NOT NULL REFERENCES quarantine (id) ON DELETE CASCADE,
  gpu_uuid TEXT NOT NULL,
  PRIMARY KEY (quarantine_id, gpu_uuid)
) STRICT, WITHOUT ROWID;

-- Who did what with the powers of an operator.
CREATE TABLE audit_log (
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  actor_id TEXT NOT NULL REFERENCES users (id),
  action TEXT NOT NULL,
  subject TEXT NOT NULL,
  -- JSON
  details TEXT NOT NULL
) STRICT;
`;
