import { burnPerHourMicro } from '../../domain/burn.js';
import { actorOf } from '../../domain/act.js';
import type { Caller, SessionCaller } from '../../domain/caller.js';
import { Refusal } from '../../domain/refusal.js';
import { PERIODS, periodAt, type Period } from '../../domain/spend-cap.js';
import type { Row } from '../../store/schema.js';
import { query, rowById } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { findLiveRates, instancesIn } from '../instances/queries.js';
import { undoStart } from '../instances/release.js';
import { transition } from '../instances/transitions.js';
import { settleSoon } from '../metering/meters.js';
import { recordAct } from '../system/acts.js';
import type { Platform } from '../system/platform.js';
import { keepEarlierLimit } from './earlier-limits.js';
import { settleOrganizations } from './settle.js';
import { findCaps, refusalOfPeriods } from './spend-check.js';
import { spentByDay, spentIn } from './spent-days.js';

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
 * with API_KEY_NOT_FOUND, and with INVALID_STATE like {@link checkCreating}.
 */
export function setSpendCaps(
  platform: Platform,
  caller: SessionCaller,
  apiKeyId: string | null,
  caps: Caps,
): CapDetails {
  return platform.store.transact((tx) => {
    const owner = ownerOf(tx, caller, apiKeyId);
    const { organizationId } = owner;
    settleOrganizations(platform, tx, [organizationId]);
    const before = findCap(tx, apiKeyId ?? organizationId);
    replaceCaps(tx, owner, caps);
    undoStarts(tx, organizationId);
    checkCreating(tx, owner, before, caps);
    settleSoon(tx, organizationId);
    const object = apiKeyId === null ? `orgs/${organizationId}` : `api-keys/${apiKeyId}`;
    recordAct(tx, organizationId, actorOf(caller), 'spend_caps.replace', object);
    return describe(tx, owner);
  });
}

/** Replaces the row of caps; without a cap there is none. What was used up to now must be settled before. */
export function replaceCaps(
  tx: Tx,
  { organizationId, apiKeyId }: Owner,
  { burn_per_hour_micro, day_micro, month_micro }: Caps,
): void {
  const id = apiKeyId ?? organizationId;
  const before = findCap(tx, id);
  if (before) keepEarlierCaps(tx, before, { day_micro, month_micro });
  tx.run(query.deleteFrom('spend_caps').where('id', '=', id));
  const caps = { burn_per_hour_micro, day_micro, month_micro };
  if (Object.values(caps).every((micro) => micro === null)) return;
  const told = { ...toldOf('day', before, day_micro), ...toldOf('month', before, month_micro) };
  const from = {
    day_from: before?.day_micro === day_micro ? before.day_from : tx.now,
    month_from: before?.month_micro === month_micro ? before.month_from : tx.now,
  };
  const owner = { id, organization_id: organizationId, api_key_id: apiKeyId };
  tx.run(query.insertInto('spend_caps').values({ ...owner, ...caps, set_at: tx.now, ...from, ...told }));
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

/** Keeps the caps that are changed now, for time before that is not charged yet. */
function keepEarlierCaps(tx: Tx, cap: Row<'spend_caps'>, next: Pick<Caps, 'day_micro' | 'month_micro'>): void {
  const { organization_id, api_key_id } = cap;
  for (const kind of PERIODS) {
    const limit_micro = cap[`${kind}_micro`];
    if (limit_micro === null || limit_micro === next[`${kind}_micro`]) continue;
    // At midnight, the day or month that is over.
    const period = periodAt(kind, tx.now - 1);
    const days = spentByDay(tx, { organizationId: organization_id, apiKeyId: api_key_id, from: period.from });
    const times = { from_at: cap[`${kind}_from`], spent_micro: spentIn(days, period) };
    keepEarlierLimit(tx, { organization_id, limited_id: cap.id, kind, limit_micro, ...times });
  }
}

/**
 * Undoes the starts that the caps on days and months would refuse now. Otherwise such an instance would run for nothing until it is shown
 * as running, which can take five minutes.
 */
function undoStarts(tx: Tx, organizationId: string): void {
  for (const instance of instancesIn(tx, organizationId, 'starting')) {
    const live = findLiveRates(tx, organizationId);
    const caps = findCaps(tx, { organizationId, apiKeyId: instance.api_key_id });
    const refusal = caps.map((state) => refusalOfPeriods(state, live)).find((one) => one !== undefined);
    if (!refusal) continue;
    const reason = { kind: 'spend_cap_reached', message: `the start is undone: ${refusal.message}` } as const;
    undoStart(tx, transition(tx, instance, 'stopped', reason));
  }
}

/**
 * Refuses with INVALID_STATE a cap that is lowered to less than five minutes of what runs while an instance is being created, for the same
 * reason: a deploy cannot be undone, and whoever sets caps could use GPUs for nothing again and again.
 */
function checkCreating(tx: Tx, owner: Owner, before: Caps | undefined, caps: Caps): void {
  const { organizationId, apiKeyId } = owner;
  const lowered = PERIODS.filter(
    (period) => (caps[`${period}_micro`] ?? Infinity) < (before?.[`${period}_micro`] ?? Infinity),
  );
  const isCounted = ({ api_key_id }: Pick<Row<'instances'>, 'api_key_id'>) =>
    apiKeyId === null || api_key_id === apiKeyId;
  const creating = instancesIn(tx, organizationId, 'creating').find(isCounted);
  const state = findCaps(tx, owner).find(({ cap }) => cap.api_key_id === apiKeyId);
  if (!creating || !state || !refusalOfPeriods(state, findLiveRates(tx, organizationId), lowered)) return;
  throw new Refusal(
    'INVALID_STATE',
    `the instance ${creating.id} is being created, and the cap would leave less than five minutes of what runs; try again once it is running, or destroy it first`,
  );
}

function findCap(tx: Tx, id: string): Row<'spend_caps'> | undefined {
  return tx.get(rowById('spend_caps', id));
}

function ownerOf(tx: Tx, { organizationId }: Caller, apiKeyId: string | null): Owner {
  if (apiKeyId !== null && tx.get(rowById('api_keys', apiKeyId))?.organization_id !== organizationId)
    throw new Refusal('API_KEY_NOT_FOUND', 'no API key of this organization has this id');
  return { organizationId, apiKeyId };
}

function describe(tx: Tx, { organizationId, apiKeyId }: Owner): CapDetails {
  const cap = findCap(tx, apiKeyId ?? organizationId);
  const days = spentByDay(tx, { organizationId, apiKeyId, from: periodAt('month', tx.now).from });
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
