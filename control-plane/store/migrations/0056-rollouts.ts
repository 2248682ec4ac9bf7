/** Upgrades of agents that operators start. */
export const rollouts = `
-- Whether the owner of the host lets its agent upgrade itself, as the agent said when it last connected.
ALTER TABLE machines ADD COLUMN takes_upgrades INTEGER NOT NULL DEFAULT 0;
CREATE INDEX machines_taking_upgrades ON machines (agent_version, id) WHERE takes_upgrades = 1 AND removed_at IS NULL;

CREATE TABLE rollouts (
  id TEXT PRIMARY KEY,
  -- Of the release to which agents are upgraded.
  version TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  -- Since when it asks no further host, and why; NULL: it goes on, or has asked all.
  stopped_at INTEGER,
  stop_reason TEXT,
  -- When the last host that was asked had answered; NULL: it is open.
  ended_at INTEGER,
  -- 1 while it is open, NULL afterwards: at most one is.
  open INTEGER UNIQUE CHECK (open = 1)
) STRICT;
CREATE INDEX rollouts_by_start ON rollouts (started_at DESC, id);

-- The hosts that a rollout has asked.
CREATE TABLE rollout_hosts (
  rollout_id TEXT NOT NULL REFERENCES rollouts (id),
  machine_id TEXT NOT NULL REFERENCES machines (id),
  wave INTEGER NOT NULL,
  asked_at INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('asked', 'loading', 'installing', 'upgraded', 'failed')),
  -- When it was upgraded or has failed.
  ended_at INTEGER,
  reason TEXT,
  PRIMARY KEY (rollout_id, machine_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX rollout_hosts_open ON rollout_hosts (rollout_id) WHERE ended_at IS NULL;
CREATE INDEX rollout_hosts_by_state ON rollout_hosts (rollout_id, state, ended_at);
`;
