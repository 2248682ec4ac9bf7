import { MINUTE_MS } from '../../../shared/time.js';
import { OPERATORS } from '../../domain/event.js';
import { waveSize } from '../../domain/machines/waves.js';
import { compileOnce, insertRow, query, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordEvent } from '../events/record.js';
import { nameOfMachine } from '../machines/machines.js';
import type { Platform } from '../system/platform.js';
import { findOpenRollout, selectWaiting, type Rollout } from './rollouts.js';

/** How long a host has for an upgrade, the loading of the release included. A restart of the control plane begins it anew. */
const PATIENCE_MS = 30 * MINUTE_MS;
/** For so long an upgraded host must take instances before the next one is asked. */
const PROVEN_MS = MINUTE_MS;
/** A host that has not begun is asked again after this time. */
const ASK_AGAIN_MS = MINUTE_MS;

type OpenHost = ReturnType<typeof findOpenHosts>[number];

/** What the worker knows of a host that was asked, in monotonic milliseconds. */
interface Watched {
  since: number;
  askedAt: number;
  /** Since when the host takes instances with the new version; null: it does not. */
  provenSince: number | null;
}

/**
 * Makes the worker that carries a rollout on: it asks the hosts of a wave, waits until each of them runs the new version and takes
 * instances, and then asks the next wave. After the first failure it asks no more. Returns the number of hosts that were asked or done.
 */
export function rolloutWorkerOf(platform: Platform): () => { moved: number } {
  const watched = new Map<string, Watched>();
  return () => {
    // Nobody can load anything: what was started before waits.
    if (platform.hostReleaseVersion === null) return { moved: 0 };
    return platform.store.transact((tx) => {
      const rollout = findOpenRollout(tx);
      if (!rollout) {
        watched.clear();
        return { moved: 0 };
      }
      const open = findOpenHosts(tx, rollout.id);
      const ended = open.filter((host) => look(platform, tx, rollout, host, watched)).length;
      if (ended < open.length) return { moved: ended };
      return { moved: ended + goOn(platform, tx, rollout) };
    });
  };
}

/** Ends the upgrade of a host that has succeeded or taken too long. Returns whether it has ended. */
function look(platform: Platform, tx: Tx, rollout: Rollout, host: OpenHost, all: Map<string, Watched>): boolean {
  const { machine_id, agent_version, removed_at } = host;
  const now = platform.clock.monotonic();
  const watched = all.get(machine_id) ?? { since: now, askedAt: -Infinity, provenSince: null };
  all.set(machine_id, watched);
  const isNew = agent_version === rollout.version;
  watched.provenSince = isNew && platform.connections.isReady(machine_id) ? (watched.provenSince ?? now) : null;
  if (watched.provenSince !== null && now - watched.provenSince >= PROVEN_MS) {
    const done = { state: 'upgraded' as const, ended_at: tx.now };
    tx.run(updateRows('rollout_hosts', done, { rollout_id: rollout.id, machine_id }));
  } else if (removed_at !== null) {
    failHost(tx, rollout, machine_id, 'the machine was removed');
  } else if (now - watched.since >= PATIENCE_MS) {
    const minutes = PATIENCE_MS / MINUTE_MS;
    failHost(
      tx,
      rollout,
      machine_id,
      isNew
        ? `the host has the new version, but took no instances within ${minutes} minutes`
        : `the host was not back with the new version within ${minutes} minutes`,
    );
  } else {
    if (!isNew && host.state === 'asked' && now - watched.askedAt >= ASK_AGAIN_MS) {
      const { version } = rollout;
      const ask = () => platform.connections.send(machine_id, { message: { $case: 'upgrade', value: { version } } });
      tx.afterCommit(ask);
      watched.askedAt = now;
    }
    return false;
  }
  all.delete(machine_id);
  return true;
}

/** Records that a host has failed, which stops its rollout: no further host is asked. Operators are told. */
export function failHost(tx: Tx, { id, version }: Rollout, machine_id: string, reason: string): void {
  tx.run(updateRows('rollout_hosts', { state: 'failed', ended_at: tx.now, reason }, { rollout_id: id, machine_id }));
  const machine = nameOfMachine(tx, machine_id);
  const stopping = query
    .updateTable('rollouts')
    .set({ stopped_at: tx.now, stop_reason: `${machine.machine_name}: ${reason}` })
    .where('id', '=', id)
    .where('stopped_at', 'is', null);
  tx.run(stopping);
  recordEvent(tx, OPERATORS, 'machine.upgrade_failed', `machines/${machine_id}`, { ...machine, version, reason });
}

/** Asks the next wave, or ends the rollout if it was stopped or nobody is left. Returns the number of hosts asked. */
function goOn({ connections, hostReleaseVersion }: Platform, tx: Tx, before: Rollout): number {
  const { id, version } = before;
  const { stopped_at } = findOpenRollout(tx) ?? before;
  const end = (why: Partial<Rollout> = {}) => {
    tx.run(updateRows('rollouts', { ended_at: tx.now, open: null, ...why }, { id }));
    return 0;
  };
  if (stopped_at !== null) return end();
  if (hostReleaseVersion !== version) {
    return end({ stopped_at: tx.now, stop_reason: `GPURENT_HOST_RELEASE names release ${hostReleaseVersion} now` });
  }
  const wave = (tx.get(lastWave({ id }))?.wave ?? 0) + 1;
  const next = findReady(tx, before, waveSize(wave), (machineId) => connections.isReady(machineId));
  if (next.length === 0) return end();
  for (const machine_id of next)
    tx.run(
      insertRow('rollout_hosts', {
        rollout_id: id,
        machine_id,
        wave,
        asked_at: tx.now,
        state: 'asked',
        ended_at: null,
        reason: null,
      }),
    );
  return next.length;
}

/** Returns up to `most` hosts that wait and can be asked now. */
function findReady(tx: Tx, rollout: Rollout, most: number, isReady: (machineId: string) => boolean): string[] {
  const ids = selectWaiting(tx, rollout)?.select('id');
  return ids === undefined
    ? []
    : tx
        .all(ids)
        .map(({ id }) => id)
        .filter(isReady)
        .slice(0, most);
}

const lastWave = compileOnce(({ id }: { id: string }) =>
  query
    .selectFrom('rollout_hosts')
    .select(({ fn }) => fn.max<number | null>('wave').as('wave'))
    .where('rollout_id', '=', id),
);

function findOpenHosts(tx: Tx, rolloutId: string) {
  return tx.all(openHosts({ rolloutId }));
}

const openHosts = compileOnce(({ rolloutId }: { rolloutId: string }) =>
  query
    .selectFrom('rollout_hosts')
    .innerJoin('machines', 'machines.id', 'rollout_hosts.machine_id')
    .select(['machine_id', 'state', 'agent_version', 'removed_at'])
    .where('rollout_id', '=', rolloutId)
    .where('ended_at', 'is', null),
);
