import { DAY_MS } from '../../../shared/time.js';
import type { Act, Actor, ActorKind } from '../../domain/act.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, query, sql, statement } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { queueAct } from './act-queue.js';
import { numbersIn, pageOfMatching, type Period } from './log-pages.js';
import type { Page, PageRequest } from './pages.js';
import type { Core } from './platform.js';

export type ActRow = Row<'organization_acts'>;

/** For how long acts are kept, and how many of an organization. */
export const ACTS_KEPT_MS = 400 * DAY_MS;
export const ACTS_KEPT = 1_000_000;
/** Most acts that one run deletes. */
export const ACTS_A_RUN = 500;
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
  queueAct(tx, organizationId, number);
  if (number > ACTS_KEPT) tx.run(removed({ organizationId, number: number - ACTS_KEPT }));
}

function cut(text: string): string {
  return text.length > MOST_CHARS ? `${text.slice(0, MOST_CHARS - 1)}…` : text;
}

export interface ActFilter extends Period {
  actor_kind?: ActorKind;
  actor_id?: string;
  action?: Act;
}

const NEWEST_FIRST = { by: { number: 'desc' }, keyOf: ({ number }: { number: number }) => [number] } as const;

/**
 * Lists what was done in an organization, newest first. A page looks at no more acts than {@link pageOfMatching} does, so with a filter by
 * actor or action it can have fewer than its limit although it is not the last. Refuses a cursor of another list and times that
 * contradict each other with VALIDATION_FAILED.
 */
export function listActs(
  { store }: Core,
  { organizationId }: { organizationId: string },
  { actor_kind, actor_id, action, ...request }: PageRequest & ActFilter,
): Page<ActRow> {
  return store.transact((tx) => {
    const { from, to } = numbersIn(request, {
      newest: () => tx.get(newestOf({ organizationId }))?.number ?? 0,
      next: (number) => tx.get(nextOf({ organizationId, number })),
    });
    const all = query.selectFrom('organization_acts').selectAll().where('organization_id', '=', organizationId);
    const inRange = all.where('number', '>=', from).where('number', '<', to);
    const matching = (acts: typeof inRange) => {
      let some = acts;
      if (actor_kind !== undefined) some = some.where('actor_kind', '=', actor_kind);
      if (actor_id !== undefined) some = some.where('actor_id', '=', actor_id);
      if (action !== undefined) some = some.where('action', '=', action);
      return some;
    };
    return pageOfMatching(tx, inRange, matching, request, NEWEST_FIRST);
  });
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
