import type { EndedRun } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { compileOnce, insertRow, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { MAX_RUN_ID_CHARS } from '../machines/message-validation.js';
import type { Instance } from '../instances/queries.js';
import { noteStarted } from '../instances/transitions.js';
import { cappedKeyOf, settleSoon } from '../metering/meters.js';

/** Most runs that are taken from one message. An honest agent keeps fewer. */
const MAX_RUNS = 64;

/**
 * Charges ended runs without a meter interval: the instance was never `running` while they lasted. Charges only time within the
 * instance's charge window, and no time twice. Returns the instance as it is then.
 */
export function chargeEndedRuns(tx: Tx, instance: Instance, runs: readonly EndedRun[]): Instance {
  return runs
    .slice(0, MAX_RUNS)
    .filter(({ runId }) => runId !== '' && runId.length <= MAX_RUN_ID_CHARS)
    .reduce((before, run) => chargeEndedRun(tx, before, run), instance);
}

function chargeEndedRun(tx: Tx, instance: Instance, { runId, ranMs, endedMsAgo }: EndedRun): Instance {
  const { charge_from, charge_to, run_not_before } = instance;
  if (charge_from === null || isMetered(tx, instance.id, runId)) return instance;
  const ended = tx.now - endedMsAgo;
  const opened_at = Math.max(ended - ranMs, charge_from, endOfLast(tx, instance.id));
  const closed_at = Math.min(ended, charge_to ?? tx.now);
  if (closed_at <= opened_at) return instance;
  const { id: instance_id, organization_id, machine_id } = instance;
  const times = { opened_at, closed_at, attested_to: closed_at, settled_to: opened_at };
  const run_began_at = Math.max(ended - ranMs, run_not_before ?? -Infinity);
  const run = { run_id: runId, run_began_at, run_not_before };
  const interval = { instance_id, organization_id, machine_id, meter: 'gpu', ...run, ...times } as const;
  tx.run(insertRow('meter_intervals', { ...interval, capped_key_id: cappedKeyOf(instance, 'gpu') }));
  settleSoon(tx, organization_id);
  return noteStarted(tx, instance, opened_at);
}

function isMetered(tx: Tx, instanceId: string, runId: string): boolean {
  return tx.get(intervalOf({ instanceId, runId })) !== undefined;
}

const intervalOf = compileOnce(({ instanceId, runId }: { instanceId: string; runId: string }) =>
  query
    .selectFrom('meter_intervals')
    .select('id')
    .where('instance_id', '=', instanceId)
    .where('run_id', '=', runId)
    .limit(sql.lit(1)),
);

/**
 * Returns the end of the last GPU interval, Infinity while it is open, and -Infinity without one. An end in the future dates from
 * before the clock was set back, and is ignored.
 */
function endOfLast(tx: Tx, instanceId: string): number {
  const last = tx.get(lastOf({ instanceId }));
  if (last?.closed_at === null) return Infinity;
  return last === undefined || last.closed_at > tx.now ? -Infinity : last.closed_at;
}

const lastOf = compileOnce(({ instanceId }: { instanceId: string }) =>
  query
    .selectFrom('meter_intervals')
    .select('closed_at')
    .where('instance_id', '=', instanceId)
    .where('meter', '=', 'gpu')
    .orderBy('id', 'desc')
    .limit(sql.lit(1)),
);
