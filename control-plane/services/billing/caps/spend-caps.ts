import { burnPerHourMicro, countedFor } from '../../../domain/money/burn.js';
import { actorOf } from '../../../domain/act.js';
import type { Caller, SessionCaller } from '../../../domain/caller.js';
import { Refusal } from '../../../domain/refusal.js';
import { CAP_KINDS, PERIODS, isPeriod, periodAt, type Caps, type Period } from '../../../domain/money/spend-cap.js';
import type { Row } from '../../../store/schema.js';
import { insertRow, query, rowById } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { capsIn, findCapRows, type Cap } from '../../organizations/keys/cap-rows.js';
import { findLiveRates, instancesIn } from '../../instances/queries.js';
import { undoStart } from '../../instances/release.js';
import { transition } from '../../instances/transitions.js';
import { settleSoon } from '../../metering/meters.js';
import { recordAct } from '../../system/acts.js';
import type { Core, Platform } from '../../system/platform.js';
import { keepEarlierLimit } from '../limits/earlier-limits.js';
import { checkExpected } from '../limits/expected-stops.js';
import { settleOrganizations } from '../settle/settle.js';
import { findCaps, refusalOfPeriod, type CapState } from '../limits/spend-check.js';
import { earliestOf, spentByDay, spentIn } from '../limits/spent-days.js';

/** The caps of an organization or an API key, and what counts for them now. */
export type CapDetails = Caps &
  Record<`spent_${Period}_micro`, number> & { set_at: number | null; present_burn_per_hour_micro: number };

/** Whose caps: those of an API key, or without one those of the organization. */
interface Owner {
  organizationId: string;
  apiKeyId: string | null;
}

/** Returns the caps of the caller's organization, or of an API key of it. Refuses an unknown key with API_KEY_NOT_FOUND. */
export function readSpendCaps(core: Core, caller: Caller, apiKeyId: string | null): CapDetails {
  return core.store.transact((tx) => describe(tx, ownerOf(tx, caller, apiKeyId)));
}

/**
 * Replaces the caps of the caller's organization, or of an API key of it. They concern what is used from now on. Refuses an unknown key
 * with API_KEY_NOT_FOUND, and with INVALID_STATE like {@link checkCreating} and, unless `expected` is null, like {@link checkExpected}.
 */
export function setSpendCaps(
  platform: Platform,
  caller: SessionCaller,
  apiKeyId: string | null,
  caps: Caps,
  expected: number | null = null,
): CapDetails {
  return platform.store.transact((tx) => {
    const owner = ownerOf(tx, caller, apiKeyId);
    const { organizationId } = owner;
    settleOrganizations(platform, tx, [organizationId]);
    const before = capsIn(findCapRows(tx, [apiKeyId ?? organizationId]));
    replaceCaps(tx, owner, caps);
    const undone = undoStarts(tx, organizationId);
    checkCreating(tx, owner, before, caps);
    if (expected !== null) checkExpected(platform, tx, owner, undone, expected);
    settleSoon(tx, organizationId);
    const object = apiKeyId === null ? `orgs/${organizationId}` : `api-keys/${apiKeyId}`;
    recordAct(tx, organizationId, actorOf(caller), 'spend_caps.replace', object);
    return describe(tx, owner);
  });
}

/** Replaces the caps of an owner. What was used up to now must be settled before. */
export function replaceCaps(tx: Tx, { organizationId, apiKeyId }: Owner, caps: Caps): void {
  const owner_id = apiKeyId ?? organizationId;
  const before = findCapRows(tx, [owner_id]);
  for (const cap of before) if (cap.amount_micro !== caps[`${cap.kind}_micro`]) keepEarlierCap(tx, cap);
  tx.run(query.deleteFrom('spend_caps').where('owner_id', '=', owner_id));
  for (const kind of CAP_KINDS) {
    const amount_micro = caps[`${kind}_micro`];
    if (amount_micro === null) continue;
    const owner = { owner_id, organization_id: organizationId, api_key_id: apiKeyId };
    const same = before.find((one) => one.kind === kind && one.amount_micro === amount_micro);
    tx.run(insertRow('spend_caps', { ...owner, kind, amount_micro, set_at: tx.now, ...sinceOf(same, tx.now) }));
  }
}

/** Returns since when a cap holds, and of what an organization was told: one that stays the same is not told of again. */
function sinceOf(same: Cap | undefined, now: number): Pick<Cap, 'from_at' | 'told_day' | 'told_percent'> {
  const { from_at = now, told_day = null, told_percent = null } = same ?? {};
  return { from_at, told_day, told_percent };
}

/** Keeps a cap on a period that is changed now, for time before that is not charged yet. */
function keepEarlierCap(tx: Tx, { owner_id, kind, organization_id, api_key_id, amount_micro, from_at }: Cap): void {
  if (!isPeriod(kind)) return;
  // At midnight, the period that is over.
  const period = periodAt(kind, tx.now - 1);
  const days = spentByDay(tx, { organizationId: organization_id, apiKeyId: api_key_id, from: period.from });
  const times = { from_at, spent_micro: spentIn(days, period) };
  keepEarlierLimit(tx, { organization_id, limited_id: owner_id, kind, limit_micro: amount_micro, ...times });
}

/**
 * Undoes the starts that the caps on days and months would refuse now. Otherwise such an instance would run for nothing until it is shown
 * as running, which can take five minutes. Returns how many.
 */
function undoStarts(tx: Tx, organizationId: string): number {
  let undone = 0;
  for (const instance of instancesIn(tx, organizationId, 'starting')) {
    const live = findLiveRates(tx, organizationId);
    const caps = findCaps(tx, { organizationId, apiKeyId: instance.run_key_id });
    const refusal = caps.map((state) => refusalOfPeriod(state, live)).find((one) => one !== undefined);
    if (!refusal) continue;
    const reason = { kind: 'spend_cap_reached', message: `the start is undone: ${refusal.message}` } as const;
    undoStart(tx, transition(tx, instance, 'stopped', reason));
    undone++;
  }
  return undone;
}

/**
 * Refuses with INVALID_STATE a cap that is lowered to less than five minutes of what runs while an instance is being created, for the same
 * reason: a deploy cannot be undone, and whoever sets caps could use GPUs for nothing again and again.
 */
function checkCreating(tx: Tx, owner: Owner, before: Caps, caps: Caps): void {
  const { organizationId, apiKeyId } = owner;
  const lowered = PERIODS.filter(
    (period) => (caps[`${period}_micro`] ?? Infinity) < (before[`${period}_micro`] ?? Infinity),
  );
  const isCounted = ({ run_key_id }: Pick<Row<'instances'>, 'run_key_id'>) =>
    apiKeyId === null || run_key_id === apiKeyId;
  const creating = instancesIn(tx, organizationId, 'creating').find(isCounted);
  if (!creating) return;
  const live = findLiveRates(tx, organizationId);
  const isLowered = ({ cap }: CapState) => cap.api_key_id === apiKeyId && lowered.some((kind) => kind === cap.kind);
  if (!findCaps(tx, owner).some((state) => isLowered(state) && refusalOfPeriod(state, live))) return;
  throw new Refusal(
    'INVALID_STATE',
    `the instance ${creating.id} is being created, and the cap would leave less than five minutes of what runs; try again once it is running, or destroy it first`,
  );
}

function ownerOf(tx: Tx, { organizationId }: Caller, apiKeyId: string | null): Owner {
  if (apiKeyId !== null && tx.get(rowById('api_keys', apiKeyId))?.organization_id !== organizationId)
    throw new Refusal('API_KEY_NOT_FOUND', 'no API key of this organization has this id');
  return { organizationId, apiKeyId };
}

function describe(tx: Tx, { organizationId, apiKeyId }: Owner): CapDetails {
  const rows = findCapRows(tx, [apiKeyId ?? organizationId]);
  const days = spentByDay(tx, { organizationId, apiKeyId, from: earliestOf(PERIODS, tx.now) });
  const live = findLiveRates(tx, organizationId);
  const spent = PERIODS.map((period) => [`spent_${period}_micro`, spentIn(days, periodAt(period, tx.now))]);
  return {
    ...capsIn(rows),
    set_at: rows[0]?.set_at ?? null,
    present_burn_per_hour_micro: burnPerHourMicro(countedFor(apiKeyId, live)),
    ...(Object.fromEntries(spent) as Record<`spent_${Period}_micro`, number>),
  };
}
