/** Times are milliseconds since 1970 UTC, money is micro-dollars, flags are 0 or 1. */
export const initial = `
CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO meta (key, value) VALUES ('epoch', '1');

CREATE TABLE users (
  id TEXT PRIMARY KEY,
  email TEXT NOT NULL COLLATE NOCASE UNIQUE,
  name TEXT NOT NULL,
  password_hash TEXT NOT NULL,
  is_operator INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  token_hash TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_user ON sessions (user_id);

CREATE TABLE organizations (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  balance_micro INTEGER NOT NULL DEFAULT 0,
  payments_frozen_at INTEGER,
  -- Since when the balance has been at or below zero, as it was committed.
  low_since INTEGER,
  -- When to settle next: at a change of status, when the balance runs out, every minute; null: nothing is metered.
  settle_at INTEGER,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX organizations_to_settle ON organizations (settle_at) WHERE settle_at IS NOT NULL;
CREATE INDEX organizations_low ON organizations (low_since) WHERE low_since IS NOT NULL;

CREATE TABLE memberships (
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  user_id TEXT NOT NULL REFERENCES users (id),
  role TEXT NOT NULL CHECK (role IN ('admin', 'member')),
  joined_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX memberships_by_user ON memberships (user_id, joined_at);

CREATE TABLE invites (
  id TEXT PRIMARY KEY,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  email TEXT NOT NULL COLLATE NOCASE,
  role TEXT NOT NULL CHECK (role IN ('admin', 'member')),
  token_hash TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX invites_by_organization ON invites (organization_id, created_at);

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  creator_id TEXT NOT NULL REFERENCES users (id),
  name TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('personal', 'team')),
  prefix TEXT NOT NULL,
  secret_hash TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER,
  revoked_at INTEGER
) STRICT;
CREATE INDEX api_keys_by_organization ON api_keys (organization_id, created_at);

CREATE TABLE ssh_keys (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id),
  name TEXT NOT NULL,
  public_key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  UNIQUE (user_id, fingerprint)
) STRICT;

CREATE TABLE enrollment_tokens (
  id TEXT PRIMARY KEY,
  token_hash TEXT NOT NULL UNIQUE,
  max_uses INTEGER NOT NULL,
  uses INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  revoked_at INTEGER,
  -- The one host that may enrol anew with it; null: any new one.
  machine_id TEXT REFERENCES machines (id)
) STRICT;

CREATE TABLE machines (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  region TEXT NOT NULL,
  public_address TEXT NOT NULL,
  arch TEXT NOT NULL,
  cpu_model TEXT NOT NULL,
  cpu_cores INTEGER NOT NULL,
  memory_mb INTEGER NOT NULL,
  disk_gb INTEGER NOT NULL,
  disk_quota TEXT NOT NULL,
  driver_version TEXT,
  cuda_version TEXT,
  vm_capable INTEGER NOT NULL,
  gpu_release_supported INTEGER NOT NULL,
  agent_version TEXT,
  boot_id TEXT,
  enrolled_at INTEGER NOT NULL,
  last_seen_at INTEGER,
  -- Whether the store was restored from an older copy, and this host has not been heard since.
  is_ahead INTEGER NOT NULL DEFAULT 0,
  cordoned_at INTEGER,
  lost_at INTEGER,
  removed_at INTEGER,
  -- Since when renters may be put on it though nothing holds their disks to their size.
  quota_waived_at INTEGER,
  maintenance_starts_at INTEGER,
  maintenance_ends_at INTEGER
) STRICT;

-- How hosts prove who they are: hashes of certificates, and of secrets where the wire is plain text.
CREATE TABLE host_credentials (
  machine_id TEXT NOT NULL REFERENCES machines (id),
  generation INTEGER NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  issued_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  PRIMARY KEY (machine_id, generation)
) STRICT, WITHOUT ROWID;

CREATE TABLE gpus (
  machine_id TEXT NOT NULL REFERENCES machines (id),
  uuid TEXT NOT NULL,
  position INTEGER NOT NULL,
  model TEXT NOT NULL,
  memory_mb INTEGER NOT NULL,
  healthy INTEGER NOT NULL,
  reason TEXT,
  -- 0 once the host no longer reports it: the row stays for those that hold a claim on it.
  present INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (machine_id, uuid)
) STRICT, WITHOUT ROWID;

CREATE TABLE offers (
  id TEXT PRIMARY KEY,
  machine_id TEXT NOT NULL REFERENCES machines (id),
  num_gpus INTEGER NOT NULL CHECK (num_gpus > 0),
  price_per_hour_micro INTEGER NOT NULL CHECK (price_per_hour_micro >= 0),
  storage_price_per_gb_hour_micro INTEGER NOT NULL CHECK (storage_price_per_gb_hour_micro >= 0),
  created_at INTEGER NOT NULL,
  withdrawn_at INTEGER
) STRICT;
CREATE INDEX offers_by_machine ON offers (machine_id);

CREATE TABLE templates (
  id TEXT PRIMARY KEY,
  hash_id TEXT NOT NULL,
  organization_id TEXT REFERENCES organizations (id),
  visibility TEXT NOT NULL CHECK (visibility IN ('system', 'public', 'organization')),
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  readme TEXT,
  kind TEXT NOT NULL CHECK (kind IN ('container', 'vm')),
  mode TEXT NOT NULL,
  image TEXT NOT NULL,
  arch TEXT NOT NULL,
  cuda_max TEXT,
  ssh_user TEXT NOT NULL,
  env_sealed BLOB NOT NULL,
  registry_sealed BLOB,
  onstart TEXT,
  command TEXT NOT NULL,
  ports TEXT NOT NULL,
  uses_access_token INTEGER NOT NULL,
  coming_soon INTEGER NOT NULL,
  recommended INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  deactivated_at INTEGER
) STRICT;
CREATE INDEX templates_by_hash ON templates (hash_id);

CREATE TABLE instances (
  id TEXT PRIMARY KEY,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  machine_id TEXT NOT NULL REFERENCES machines (id),
  offer_id TEXT NOT NULL REFERENCES offers (id),
  template_id TEXT NOT NULL REFERENCES templates (id),
  label TEXT,
  status TEXT NOT NULL CHECK (status IN
    ('creating', 'starting', 'running', 'stopping', 'stopped', 'destroying', 'destroyed', 'error')),
  num_gpus INTEGER NOT NULL,
  disk_gb INTEGER NOT NULL,
  price_per_hour_micro INTEGER NOT NULL,
  storage_price_per_gb_hour_micro INTEGER NOT NULL,
  -- The template as the API showed it at deploy: JSON without secret values.
  template_snapshot TEXT NOT NULL,
  -- What the host is told to run: JSON, encrypted; emptied when destroyed.
  workload_sealed BLOB,
  access_token_sealed BLOB,
  ssh_user TEXT NOT NULL,
  ssh_host TEXT,
  ssh_port INTEGER CHECK (ssh_port <> 22),
  jupyter_url TEXT,
  open_url TEXT,
  error_code TEXT,
  error_message TEXT,
  gpus_released INTEGER NOT NULL DEFAULT 0,
  gpu_release TEXT CHECK (gpu_release IN ('pending', 'released', 'unsupported')),
  gpu_release_requested_at INTEGER,
  spend_micro INTEGER NOT NULL DEFAULT 0,
  -- For how many milliseconds was charged. Whoever adds to one books the charge in the same transaction.
  gpu_settled_ms INTEGER NOT NULL DEFAULT 0,
  disk_settled_ms INTEGER NOT NULL DEFAULT 0,
  deployed_by TEXT NOT NULL,
  api_key_id TEXT REFERENCES api_keys (id),
  -- The highest sequence given to a command of this instance.
  sequence INTEGER NOT NULL DEFAULT 0,
  -- The run of the workload that was last known to be up, in its host's words.
  run_id TEXT,
  -- The number of the newest host report that was applied.
  report_number INTEGER NOT NULL DEFAULT 0,
  -- The last lines of a run that ended, as JSON.
  last_lines TEXT,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  status_changed_at INTEGER NOT NULL,
  -- When the host last made progress with it, or its status changed.
  progress_at INTEGER NOT NULL,
  destroyed_at INTEGER
) STRICT;
CREATE INDEX instances_by_organization ON instances (organization_id, created_at);
CREATE INDEX instances_live_by_organization ON instances (organization_id) WHERE status <> 'destroyed';
CREATE INDEX instances_by_status ON instances (status, progress_at);
CREATE INDEX instances_by_organization_status ON instances (organization_id, status);
CREATE INDEX instances_by_machine_status ON instances (machine_id, status);
CREATE INDEX instances_live_by_machine ON instances (machine_id) WHERE status <> 'destroyed';

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
