import { initialUsage } from './initial-usage.js';

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
${initialUsage}`;
