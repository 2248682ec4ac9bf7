import { anOperator } from '../../../domain/act.js';
import { charge } from '../../../domain/money/charge.js';
import type { Operator } from '../../../domain/caller.js';
import { Refusal } from '../../../domain/refusal.js';
import type { Row } from '../../../store/schema.js';
import { listOf, query, rowById, sql } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { recordAct } from '../../system/acts.js';
import { recordAudit } from '../../system/audit.js';
import { findInstance } from '../../instances/queries.js';
import { pageFrom, type ListOrPage, type PageRequest } from '../../system/pages.js';
import type { Core, Platform } from '../../system/platform.js';
import { appendEntry } from './ledger.js';
import { settleOrganizations } from '../settle/settle.js';

/** An instance that was charged for GPU time after a stop that its host did not confirm in time. */
export interface IgnoredStop {
  instance_id: string;
  organization_id: string;
  machine_id: string;
  /** When the stop timed out and charging began again, in ms since 1970 UTC. */
  since: number;
  /** Charged since then and not credited, in micro-dollars. */
  charged_micro: number;
  /** Whether charging still goes on. */
  is_open: boolean;
}

export type NamedStop = IgnoredStop & { organization_name: string; machine_name: string };

interface Sum {
  instance_id: string;
  ms: number;
  credited_ms: number;
  /** Written off and not yet taken off a credit. */
  written_off_micro: number;
  since: number;
  is_open: number;
}

/** Lists, for an operator, the ignored stops that are still charged or not fully credited, the oldest first. */
export function listIgnoredStops(core: Core, request: PageRequest): ListOrPage<NamedStop> {
  return core.store.transact((tx) => {
    const { items, ...rest } = pageFrom(ignoredStops(tx), request, {
      by: { since: 'asc', instance_id: 'asc' },
      keyOf: ({ since, instance_id }) => [since, instance_id],
    });
    return { ...rest, items: items.map((stop) => nameStop(tx, stop)) };
  });
}

/** Returns the ignored stops that are still charged, or whose charges are not fully credited, the oldest first. */
export function ignoredStops(tx: Tx): IgnoredStop[] {
  const ids = tx.all(notCredited).map(({ instance_id }) => instance_id);
  if (ids.length === 0) return [];
  const known = query.selectFrom('instances').select(['id', 'organization_id', 'machine_id', 'price_per_hour_micro']);
  const instances = new Map(tx.all(known.where('id', 'in', listOf(ids))).map((row) => [row.id, row]));
  const owed = sums().having(sql<boolean>`ms > credited_ms`);
  const stops = tx.all(owed.where('instance_id', 'in', listOf(ids))).flatMap((sum) => {
    const instance = instances.get(sum.instance_id);
    return instance ? [describe(instance, sum)] : [];
  });
  return (
    stops
      // Of so short a time that it cost nothing, there is nothing to credit.
      .filter(({ charged_micro, is_open }) => is_open || charged_micro > 0)
      .sort((one, other) => one.since - other.since || (one.instance_id < other.instance_id ? -1 : 1))
  );
}

/** Reads an index that has only these intervals: what was credited once costs nothing. */
const notCredited = query
  .selectFrom('meter_intervals')
  .select('instance_id')
  .distinct()
  .where('after_stop', '=', sql.lit(1))
  .where(sql<boolean>`credited_ms < settled_to - opened_at - written_off_ms`);

/**
 * Credits, for an operator, the charges of an instance since its ignored stop, in one ledger row. Refuses with INSTANCE_NOT_FOUND,
 * and with INVALID_STATE if nothing is left to credit.
 */
export function creditIgnoredStop(
  platform: Platform,
  operator: Operator,
  instanceId: string,
  reason: string,
): Row<'transactions'> & { balance_micro: number } {
  return platform.store.transact((tx) => {
    const instance = findInstance(tx, instanceId);
    if (!instance) throw new Refusal('INSTANCE_NOT_FOUND', 'no instance has this id');
    const { organization_id: organizationId } = instance;
    settleOrganizations(platform, tx, [organizationId]);
    const sum = tx.get(sums().where('instance_id', '=', instanceId));
    const amountMicro = sum ? chargedIn(instance.price_per_hour_micro, sum) : 0;
    if (amountMicro <= 0)
      throw new Refusal(
        'INVALID_STATE',
        'this instance has no charges after an ignored stop that are not yet credited',
      );
    const credited = {
      credited_ms: sql<number>`settled_to - opened_at - written_off_ms`,
      credited_written_off_micro: sql<number>`written_off_micro`,
    };
    tx.run(
      query
        .updateTable('meter_intervals')
        .set(credited)
        .where('instance_id', '=', instanceId)
        .where('after_stop', '=', sql.lit(1)),
    );
    recordAudit(tx, operator, 'instance.credit_ignored_stop', instanceId, { amount_micro: amountMicro, reason });
    const object = `instances/${instanceId}`;
    recordAct(tx, organizationId, anOperator(reason), 'instance.credit_ignored_stop', object);
    return appendEntry(platform, tx, {
      organizationId,
      kind: 'credit',
      amountMicro,
      reason,
      authorId: operator.userId,
    });
  });
}

/** Selects sums, by instance, over the intervals that opened when a stop timed out. */
function sums() {
  return query
    .selectFrom('meter_intervals')
    .select([
      'instance_id',
      sql<number>`sum(settled_to - opened_at - written_off_ms)`.as('ms'),
      sql<number>`sum(credited_ms)`.as('credited_ms'),
      sql<number>`sum(written_off_micro - credited_written_off_micro)`.as('written_off_micro'),
      sql<number>`min(opened_at)`.as('since'),
      sql<number>`max(closed_at IS NULL)`.as('is_open'),
    ])
    .where('after_stop', '=', sql.lit(1))
    .groupBy('instance_id');
}

type Charged = Pick<Row<'instances'>, 'id' | 'organization_id' | 'machine_id' | 'price_per_hour_micro'>;

function describe({ id, price_per_hour_micro, ...of }: Charged, sum: Sum): IgnoredStop {
  const charged_micro = chargedIn(price_per_hour_micro, sum);
  return { instance_id: id, ...of, since: sum.since, charged_micro, is_open: sum.is_open === 1 };
}

/** Adds the names by which people know what an ignored stop is about. */
export function nameStop(tx: Tx, stop: IgnoredStop): NamedStop {
  return {
    ...stop,
    organization_name: tx.get(rowById('organizations', stop.organization_id))?.name ?? '',
    machine_name: tx.get(rowById('machines', stop.machine_id))?.name ?? '',
  };
}

function chargedIn(ratePerHourMicro: number, { ms, credited_ms, written_off_micro }: Sum): number {
  return charge(ratePerHourMicro, ms) - charge(ratePerHourMicro, credited_ms) - written_off_micro;
}
