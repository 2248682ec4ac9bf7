import { UpgradeState, type UpgradeReport } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { plainLine } from '../../../shared/plain-text.js';
import { Refusal } from '../../domain/refusal.js';
import { compileOnce, query, updateRows } from '../../store/sql.js';
import type { Core } from '../system/platform.js';
import { failHost } from './advance.js';
import { findOpenRollout } from './rollouts.js';

const MOST_OF_A_REASON = 512;
const MOST_OF_A_VERSION = 64;
/** The states in their order: a host only goes on. */
const STATES = ['asked', 'loading', 'installing'] as const;
const REPORTED: Partial<Record<UpgradeState, 'loading' | 'installing' | 'failed'>> = {
  [UpgradeState.UPGRADE_STATE_LOADING]: 'loading',
  [UpgradeState.UPGRADE_STATE_INSTALLING]: 'installing',
  [UpgradeState.UPGRADE_STATE_FAILED]: 'failed',
};

/**
 * Records how far the upgrade of a host is. Reports of an upgrade that nobody has asked for, and those of earlier ones, change nothing.
 * Refuses with VALIDATION_FAILED what no honest agent would send.
 */
export function recordUpgradeReport({ store }: Core, machineId: string, report: UpgradeReport): void {
  const state = REPORTED[report.state];
  if (state === undefined || report.version.length > MOST_OF_A_VERSION || report.reason.length > MOST_OF_A_REASON)
    throw new Refusal('VALIDATION_FAILED', 'the report of an upgrade has an unknown state, or is too long');
  store.transact((tx) => {
    const rollout = findOpenRollout(tx);
    if (rollout?.version !== report.version) return;
    const host = tx.get(hostOf({ rolloutId: rollout.id, machineId }));
    if (host?.ended_at !== null) return;
    if (state === 'failed')
      return failHost(
        tx,
        rollout,
        machineId,
        plainLine(report.reason, MOST_OF_A_REASON) || 'the host does not say why',
      );
    if (STATES.indexOf(state) <= STATES.indexOf(host.state as (typeof STATES)[number])) return;
    tx.run(updateRows('rollout_hosts', { state }, { rollout_id: rollout.id, machine_id: machineId }));
  });
}

const hostOf = compileOnce(({ rolloutId, machineId }: { rolloutId: string; machineId: string }) =>
  query
    .selectFrom('rollout_hosts')
    .select(['state', 'ended_at'])
    .where('rollout_id', '=', rolloutId)
    .where('machine_id', '=', machineId),
);
