import { DAY_MS } from '../../../shared/time.js';
import type { Act, Actor, ActorKind } from '../../domain/act.js';
import { invalidField } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, query, sql, statement } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { pageOf, restOf, writeCursor, type Page, type PageRequest } from './pages.js';
import type { Platform } from './platform.js';

export type ActRow = Row<'organization_acts'>;

/** For how long acts are kept, and how many of an organization. */
export const ACTS_KEPT_MS = 400 * DAY_MS;
export const ACTS_KEPT = 1_000_000;
/** Most acts that one run deletes. */
export const ACTS_A_RUN = 500;
/** Most acts that one page looks at to find those of a filter. */
export const MOST_ACTS_SCANNED = 2_000;
/** Most characters of what is stored. The longest address of a user has 254, the longest reason 256. */
const MOST_CHARS = 256;

/**
 * Records what somebody has done in an organization, in the transaction of the act: one insert. `object` is the path of what it was done
 * to, such as `instances/ID`. Without a reason, it is the one of the actor. Contains no secret and nothing of a request's body.
 */
export function recordAct(
  tx: Tx,
  organizationId: string,
  { kind, id, name, reason: given }: Actor,
  action: Act,
  object: string,
  reason: string | null = given,
  address: string | null = tx.address,
): void {
  const actor = { actorKind: kind, actorId: id, actorName: cut(name) };
  const what = { address: address && cut(address), action, object: cut(object), reason: reason && cut(reason) };
  const { number } = tx.get(added({ organizationId, at: tx.now, ...actor, ...what })) ?? { number: 0 };
  if (number > ACTS_KEPT) tx.run(removed({ organizationId, number: number - ACTS_KEPT }));
}

function cut(text: string): string {
  return text.length > MOST_CHARS ? `${text.slice(0, MOST_CHARS - 1)}…` : text;
}

export interface ActFilter {
  /** Milliseconds since 1970: from then on, and before then. */
  since?: number;
  until?: number;
  actor_kind?: ActorKind;
  actor_id?: string;
  action?: Act;
}

const NEWEST_FIRST = { by: { number: 'desc' }, keyOf: ({ number }: { number: number }) => [number] } as const;

/**
 * Lists what was done in an organization, newest first. With a filter by actor or action, a page looks at no more than
 * {@link MOST_ACTS_SCANNED} acts, so it can have fewer than its limit although it is not the last. Refuses a cursor of another list and
 * times that contradict each other with VALIDATION_FAILED.
 */
export function listActs(
  { store }: Platform,
  { organizationId }: { organizationId: string },
  { since, until, actor_kind, actor_id, action, ...request }: PageRequest & ActFilter,
): Page<ActRow> {
  if (since !== undefined && until !== undefined && until <= since)
    throw invalidField('until', 'must be later than since');
  return store.transact((tx) => {
    const from = since === undefined ? 0 : firstFrom(tx, organizationId, since);
    const to = until === undefined ? Number.MAX_SAFE_INTEGER : firstFrom(tx, organizationId, until);
    const all = query.selectFrom('organization_acts').selectAll().where('organization_id', '=', organizationId);
    const inRange = all.where('number', '>=', from).where('number', '<', to);
    const last = tx.get(
      restOf(inRange, request, NEWEST_FIRST.by)
        .offset(sql.lit(MOST_ACTS_SCANNED - 1))
        .limit(sql.lit(1)),
    );
    let matching = inRange.where('number', '>=', last?.number ?? 0);
    if (actor_kind !== undefined) matching = matching.where('actor_kind', '=', actor_kind);
    if (actor_id !== undefined) matching = matching.where('actor_id', '=', actor_id);
    if (action !== undefined) matching = matching.where('action', '=', action);
    const { items, next_cursor } = pageOf(tx, matching, request, NEWEST_FIRST);
    return { items, next_cursor: next_cursor ?? (last ? writeCursor(NEWEST_FIRST.keyOf(last)) : null) };
  });
}

/**
 * Returns the number of the first act that is not before a time, or the one after the newest. Reads a few rows: their times rise with
 * their numbers, except where the clock was set back.
 */
function firstFrom(tx: Tx, organizationId: string, time: number): number {
  const newest = tx.get(newestOf({ organizationId }))?.number ?? 0;
  let [before, from] = [0, newest + 1];
  while (from - before > 1) {
    const middle = Math.floor((before + from) / 2);
    const next = tx.get(nextOf({ organizationId, number: middle }));
    if (!next || next.at >= time) from = middle;
    else before = next.number;
  }
  return from;
}

/** Deletes acts that are older than 400 days, at most {@link ACTS_A_RUN}. Returns the number. */
export function purgeActs(tx: Tx): number {
  const old = tx.all(oldest({ before: tx.now - ACTS_KEPT_MS }));
  for (const { organization_id, number } of old) tx.run(removed({ organizationId: organization_id, number }));
  return old.length;
}

type Texts<Name extends string> = Record<Name, string>;

const added = compileOnce(
  ({
    organizationId,
    at,
    actorKind,
    actorId,
    actorName,
    address,
    action,
    object,
    reason,
  }: Texts<'organizationId' | 'actorKind' | 'actorName' | 'action' | 'object'> &
    Record<'actorId' | 'address' | 'reason', string | null> & { at: number }) =>
    statement<{ number: number }>(sql`
    INSERT INTO organization_acts
      (organization_id, number, at, actor_kind, actor_id, actor_name, address, action, object, reason)
    VALUES (${organizationId},
      coalesce((SELECT number FROM organization_acts WHERE organization_id = ${organizationId} ORDER BY number DESC LIMIT 1), 0) + 1,
      ${at}, ${actorKind}, ${actorId}, ${actorName}, ${address}, ${action}, ${object}, ${reason})
    RETURNING number`),
);

const removed = compileOnce(({ organizationId, number }: { organizationId: string; number: number }) =>
  query.deleteFrom('organization_acts').where('organization_id', '=', organizationId).where('number', '=', number),
);

const newestOf = compileOnce(({ organizationId }: Texts<'organizationId'>) =>
  query
    .selectFrom('organization_acts')
    .select('number')
    .where('organization_id', '=', organizationId)
    .orderBy('number', 'desc')
    .limit(sql.lit(1)),
);

const nextOf = compileOnce(({ organizationId, number }: { organizationId: string; number: number }) =>
  query
    .selectFrom('organization_acts')
    .select(['number', 'at'])
    .where('organization_id', '=', organizationId)
    .where('number', '>=', number)
    .orderBy('number')
    .limit(sql.lit(1)),
);

const oldest = compileOnce(({ before }: { before: number }) =>
  query
    .selectFrom('organization_acts')
    .select(['organization_id', 'number'])
    .where('at', '<=', before)
    .orderBy('at')
    .limit(sql.lit(ACTS_A_RUN)),
);
