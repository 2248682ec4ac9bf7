import { burnPerHourMicro } from '../../domain/burn.js';
import { actorOf } from '../../domain/act.js';
import type { Caller, SessionCaller } from '../../domain/caller.js';
import { Refusal } from '../../domain/refusal.js';
import { periodAt, type Period } from '../../domain/spend-cap.js';
import type { Row } from '../../store/schema.js';
import { query, rowById } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { findLiveRates } from '../instances/queries.js';
import { settleSoon } from '../metering/meters.js';
import { recordAct } from '../system/acts.js';
import type { Platform } from '../system/platform.js';
import { spentByDay, spentIn } from './load-limits.js';
import { settleOrganizations } from './settle.js';

/** The most that may be spent, in micro-dollars; null: no cap. */
export type Caps = Pick<Row<'spend_caps'>, 'burn_per_hour_micro' | 'day_micro' | 'month_micro'>;

/** The caps of an organization or an API key, and what counts for them now. */
export type CapDetails = Caps & {
  set_at: number | null;
  present_burn_per_hour_micro: number;
  spent_day_micro: number;
  spent_month_micro: number;
};

/** Whose caps: those of an API key, or without one those of the organization. */
interface Owner {
  organizationId: string;
  apiKeyId: string | null;
}

/** Returns the caps of the caller's organization, or of an API key of it. Refuses an unknown key with API_KEY_NOT_FOUND. */
export function readSpendCaps(platform: Platform, caller: Caller, apiKeyId: string | null): CapDetails {
  return platform.store.transact((tx) => describe(tx, ownerOf(tx, caller, apiKeyId)));
}

/**
 * Replaces the caps of the caller's organization, or of an API key of it. They concern what is used from now on. Refuses an unknown key
 * with API_KEY_NOT_FOUND.
 */
export function setSpendCaps(
  platform: Platform,
  caller: SessionCaller,
  apiKeyId: string | null,
  { burn_per_hour_micro, day_micro, month_micro }: Caps,
): CapDetails {
  return platform.store.transact((tx) => {
    const owner = ownerOf(tx, caller, apiKeyId);
    const { organizationId } = owner;
    settleOrganizations(platform, tx, [organizationId]);
    const id = apiKeyId ?? organizationId;
    const before = findCap(tx, id);
    tx.run(query.deleteFrom('spend_caps').where('id', '=', id));
    const caps = { burn_per_hour_micro, day_micro, month_micro };
    if (Object.values(caps).some((micro) => micro !== null)) {
      const told = { ...toldOf('day', before, day_micro), ...toldOf('month', before, month_micro) };
      const from = {
        day_from: effectiveFrom(tx.now, day_micro, before?.day_micro, before?.day_from),
        month_from: effectiveFrom(tx.now, month_micro, before?.month_micro, before?.month_from),
      };
      const row = {
        id,
        organization_id: organizationId,
        api_key_id: apiKeyId,
        ...caps,
        set_at: tx.now,
        ...from,
        ...told,
      };
      tx.run(query.insertInto('spend_caps').values(row));
    }
    settleSoon(tx, organizationId);
    const object = apiKeyId === null ? `orgs/${organizationId}` : `api-keys/${apiKeyId}`;
    recordAct(tx, organizationId, actorOf(caller), 'spend_caps.replace', object);
    return describe(tx, owner);
  });
}

/** Returns of what an organization was told: a cap that stays the same is not told of again. */
function toldOf<Name extends Period>(period: Name, before: Row<'spend_caps'> | undefined, micro: number | null) {
  const isSame = before?.[`${period}_micro`] === micro;
  const [first, percent] = isSame ? [before[`told_${period}`], before[`told_${period}_percent`]] : [null, null];
  return { [`told_${period}`]: first, [`told_${period}_percent`]: percent } as Record<
    `told_${Name}` | `told_${Name}_percent`,
    number | null
  >;
}

/**
 * Returns from when a new limit concerns what is used. One that is raised goes on, so that time of before which is not settled yet stays
 * limited; a lower one must not make such time free.
 */
export function effectiveFrom(
  now: number,
  limit: number | null,
  before: number | null = null,
  beforeFrom: number | null = null,
): number {
  return limit !== null && before !== null && beforeFrom !== null && limit >= before ? beforeFrom : now;
}

function findCap(tx: Tx, id: string): Row<'spend_caps'> | undefined {
  return tx.get(query.selectFrom('spend_caps').selectAll().where('id', '=', id));
}

function ownerOf(tx: Tx, { organizationId }: Caller, apiKeyId: string | null): Owner {
  if (apiKeyId !== null && tx.get(rowById('api_keys', apiKeyId))?.organization_id !== organizationId)
    throw new Refusal('API_KEY_NOT_FOUND', 'no API key of this organization has this id');
  return { organizationId, apiKeyId };
}

function describe(tx: Tx, { organizationId, apiKeyId }: Owner): CapDetails {
  const cap = findCap(tx, apiKeyId ?? organizationId);
  const days = spentByDay(
    tx,
    { organization_id: organizationId, api_key_id: apiKeyId },
    periodAt('month', tx.now).from,
  );
  const live = findLiveRates(tx, organizationId);
  const { burn_per_hour_micro = null, day_micro = null, month_micro = null, set_at = null } = cap ?? {};
  return {
    ...{ burn_per_hour_micro, day_micro, month_micro, set_at },
    present_burn_per_hour_micro: burnPerHourMicro(
      apiKeyId === null ? live : live.filter((one) => one.apiKeyId === apiKeyId),
    ),
    spent_day_micro: spentIn(days, periodAt('day', tx.now)),
    spent_month_micro: spentIn(days, periodAt('month', tx.now)),
  };
}
