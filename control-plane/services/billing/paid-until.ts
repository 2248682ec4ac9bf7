import type { PaidTime } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { chargedPerHourMicro } from '../../domain/burn.js';
import { paidMs } from '../../domain/paid-time.js';
import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { getOrganization } from '../accounts/organizations.js';
import { findLiveRates } from '../instances/queries.js';
import type { Platform } from '../system/platform.js';

/**
 * Returns, in ms from now, for how long the instances on a machine that run or will run are paid by their organizations'
 * balances.
 */
export function paidTimesOf(platform: Platform, machineId: string): PaidTime[] {
  return platform.store.transact((tx) => {
    const instances = tx.all(upOrStarting({ machineId }));
    const organizations = new Set(instances.map(({ organization_id }) => organization_id));
    const lasts = new Map([...organizations].map((id) => [id, lastsMs(tx, id)]));
    return instances.map(({ id, organization_id }) => ({
      instanceId: id,
      paidMs: lasts.get(organization_id) ?? 0,
    }));
  });
}

const upOrStarting = compileOnce(({ machineId }: { machineId: string }) =>
  query
    .selectFrom('instances')
    .select(['id', 'organization_id'])
    .where('machine_id', '=', machineId)
    .where('status', '<>', sql.lit('destroyed'))
    .where('status', 'in', ['creating', 'starting', 'running']),
);

function lastsMs(tx: Tx, organizationId: string): number {
  const { balance_micro } = getOrganization(tx, organizationId);
  return paidMs(balance_micro, chargedPerHourMicro(findLiveRates(tx, organizationId)));
}
