import semver from 'semver';
import type { Operator } from '../../domain/caller.js';
import { Refusal } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, insertRow, listOf, query, rowById, sql, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordAudit } from '../system/audit.js';
import { pageOf, type Page, type PageRequest } from '../system/pages.js';
import type { Core, Platform } from '../system/platform.js';

export type Rollout = Row<'rollouts'>;

/** A rollout, with how many hosts are how far. */
export type RolloutDetails = Rollout & {
  /** Hosts that would be asked next: their owners allow it, and their agents are older. */
  waiting: number;
  under_way: number;
  upgraded: number;
  failed: number;
  /** Those that have failed last. */
  failures: { machine_id: string; machine_name: string; reason: string; ended_at: number }[];
};

const MOST_FAILURES = 20;

/**
 * Starts a rollout for an operator: the agents whose owners allow it are upgraded to the release that this control plane gives to hosts.
 * Refuses with INVALID_STATE without such a release, and while another rollout is open.
 */
export function startRollout(platform: Platform, operator: Operator): RolloutDetails {
  const version = platform.hostReleaseVersion;
  if (version === null)
    throw new Refusal(
      'INVALID_STATE',
      'GPURENT_HOST_RELEASE names no release: set it to a tarball that is named as releases are, such as gpurent-0.3.1-linux-x64.tar.gz',
    );
  return platform.store.transact((tx) => {
    const open = findOpenRollout(tx);
    if (open) throw new Refusal('INVALID_STATE', `the rollout of ${open.version} has not ended; stop it first`);
    const id = platform.ids.uuid();
    tx.run(
      insertRow('rollouts', {
        id,
        version,
        started_at: tx.now,
        stopped_at: null,
        stop_reason: null,
        ended_at: null,
        open: 1,
      }),
    );
    recordAudit(tx, operator, 'rollout.start', id, { version });
    return detailsOf(tx, findRollout(tx, id));
  });
}

/**
 * Stops a rollout for an operator: it asks no further host. Those that it has asked go on. One that is stopped or over stays as it is.
 * Refuses with ROLLOUT_NOT_FOUND.
 */
export function stopRollout({ store, hostReleaseVersion }: Platform, operator: Operator, id: string): RolloutDetails {
  return store.transact((tx) => {
    const { stopped_at, ended_at, version } = findRollout(tx, id);
    if (stopped_at === null && ended_at === null) {
      const stopped = { stopped_at: tx.now, stop_reason: 'stopped by an operator' };
      // Without a release to give, nobody goes on.
      const ended = hostReleaseVersion === null ? { ended_at: tx.now, open: null } : {};
      tx.run(updateRows('rollouts', { ...stopped, ...ended }, { id }));
      recordAudit(tx, operator, 'rollout.stop', id, { version });
    }
    return detailsOf(tx, findRollout(tx, id));
  });
}

/** Returns a rollout for an operator. Refuses with ROLLOUT_NOT_FOUND. */
export function getRollout({ store }: Core, id: string): RolloutDetails {
  return store.transact((tx) => detailsOf(tx, findRollout(tx, id)));
}

const NEWEST_FIRST = {
  by: { started_at: 'desc', id: 'asc' },
  keyOf: ({ started_at, id }: Rollout) => [started_at, id],
} as const;

/** Lists the rollouts for an operator, newest first. */
export function listRollouts({ store }: Core, request: PageRequest): Page<Rollout> {
  return store.transact((tx) => pageOf(tx, query.selectFrom('rollouts').selectAll(), request, NEWEST_FIRST));
}

/** Returns the rollout that has not ended, if there is one. */
export function findOpenRollout(tx: Tx): Rollout | undefined {
  return tx.get(openRollout({}));
}

const openRollout = compileOnce(() => query.selectFrom('rollouts').selectAll().where('open', '=', sql.lit(1)));

function findRollout(tx: Tx, id: string): Rollout {
  const rollout = tx.get(rowById('rollouts', id));
  if (!rollout) throw new Refusal('ROLLOUT_NOT_FOUND', 'no rollout has this id');
  return rollout;
}

/**
 * Selects the machines that a rollout has not asked, and whose owners and agents allow that it does: those that are there and not lost.
 * Undefined if there are none.
 */
export function selectWaiting(tx: Tx, { id, version }: Rollout) {
  const older = tx
    .all(versionsOfTaking({}))
    .flatMap(({ agent_version: its }) =>
      semver.valid(its) !== null && semver.lt(its ?? '', version) ? [its ?? ''] : [],
    );
  if (older.length === 0) return undefined;
  return query
    .selectFrom('machines')
    .where('agent_version', 'in', listOf(older))
    .where('takes_upgrades', '=', sql.lit(1))
    .where('removed_at', 'is', null)
    .where('lost_at', 'is', null)
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('rollout_hosts')
            .select('machine_id')
            .where('rollout_id', '=', id)
            .whereRef('machine_id', '=', 'machines.id'),
        ),
      ),
    );
}

const versionsOfTaking = compileOnce(() =>
  query
    .selectFrom('machines')
    .select('agent_version')
    .distinct()
    .where('takes_upgrades', '=', sql.lit(1))
    .where('removed_at', 'is', null),
);

function detailsOf(tx: Tx, rollout: Rollout): RolloutDetails {
  const states = tx.all(countsOf({ id: rollout.id }));
  const countOf = (...wanted: string[]) =>
    states.reduce((sum, { state, count }) => sum + (wanted.includes(state) ? count : 0), 0);
  const left = rollout.ended_at === null ? selectWaiting(tx, rollout) : undefined;
  const waiting = left && tx.get(left.select(({ fn }) => fn.countAll<number>().as('count')));
  return {
    ...rollout,
    waiting: waiting?.count ?? 0,
    under_way: countOf('asked', 'loading', 'installing'),
    upgraded: countOf('upgraded'),
    failed: countOf('failed'),
    failures: tx.all(failuresOf({ id: rollout.id })),
  };
}

const countsOf = compileOnce(({ id }: { id: string }) =>
  query
    .selectFrom('rollout_hosts')
    .select(['state', ({ fn }) => fn.countAll<number>().as('count')])
    .where('rollout_id', '=', id)
    .groupBy('state'),
);

const failuresOf = compileOnce(({ id }: { id: string }) =>
  query
    .selectFrom('rollout_hosts')
    .innerJoin('machines', 'machines.id', 'rollout_hosts.machine_id')
    .select(['machine_id', 'machines.name as machine_name', sql<string>`coalesce(reason, '')`.as('reason')])
    .select(sql<number>`ended_at`.as('ended_at'))
    .where('rollout_id', '=', id)
    .where('state', '=', sql.lit('failed'))
    .orderBy('ended_at', 'desc')
    .limit(sql.lit(MOST_FAILURES)),
);
