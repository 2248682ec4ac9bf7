import { maySeeSecrets, type Caller } from '../../domain/caller.js';
import { oncePer } from '../../store/remembered.js';
import { timelineOf, type TimelineEvent } from '../events/timeline.js';
import {
  INSTANCE_ORDER,
  findInstances,
  getOwnInstance,
  liveIdsOf,
  sizesOf,
  unknownInstance,
} from '../instances/queries.js';
import { pageOf, shortPage, type ListOrPage, type Page, type PageRequest } from '../system/pages.js';
import type { Core, Platform } from '../system/platform.js';
import { describeInstance, withoutSecrets, type InstanceDetails } from './instance-details.js';
import { MOST_LISTED, describeAll, type HasInstanceMemory } from './remembered-instances.js';

/**
 * Returns an instance of the caller's organization, with its secrets if the caller may see them; the same object while nothing changes.
 * Refuses with INSTANCE_NOT_FOUND.
 */
export function getInstance({ instanceViews }: HasInstanceMemory, caller: Caller, id: string): InstanceDetails {
  const instance = instanceViews.of(id);
  if (instance?.organization_id !== caller.organizationId) throw unknownInstance();
  return maySeeSecrets(caller) ? instance : withoutSecrets(instance);
}

type InstanceQuery = PageRequest & { include_destroyed: boolean };

/**
 * Lists the instances of the caller's organization, newest first, with their secrets if the caller may see them; destroyed ones only
 * with `include_destroyed`: then a page can end before its limit, see {@link shortPage}. A first page is the same object while nothing
 * changes.
 */
export function listInstances(
  platform: Platform & HasInstanceMemory,
  caller: Caller,
  request: InstanceQuery,
): Page<InstanceDetails> {
  const { organizationId } = caller;
  const { include_destroyed, limit, cursor } = request;
  const isPolled = !include_destroyed && cursor === undefined && limit !== undefined && limit <= MOST_LISTED;
  const known = isPolled ? platform.instancePages.of(organizationId, String(limit)) : undefined;
  const page = known ?? readInstances(platform, organizationId, request);
  return maySeeSecrets(caller) ? page : pageWithoutSecrets(page);
}

const pageWithoutSecrets = oncePer(({ items, ...rest }: Page<InstanceDetails>): Page<InstanceDetails> => {
  return { ...rest, items: items.map(withoutSecrets) };
});

function readInstances(
  platform: Platform & HasInstanceMemory,
  organizationId: string,
  { include_destroyed, ...request }: InstanceQuery,
): Page<InstanceDetails> {
  const { store } = platform;
  if (include_destroyed) {
    // Of the past ones, which can be many, none is remembered.
    return store.transact((tx) => {
      const page = pageOf(tx, sizesOf(organizationId), request, INSTANCE_ORDER);
      const { items, ...rest } = shortPage(page, INSTANCE_ORDER);
      return { ...rest, items: findInstances(tx, items).map((row) => describeInstance(platform, tx, row)) };
    });
  }
  return describeAll(
    platform.instanceViews,
    store.transact((tx) => pageOf(tx, liveIdsOf(organizationId), request, INSTANCE_ORDER)),
  );
}

const SHOWN_EVENTS = 500;

/**
 * Lists the events of an instance, newest first: the last 500, or all that are kept if the request is paged. Refuses with
 * INSTANCE_NOT_FOUND.
 */
export function listEvents(core: Core, caller: Caller, id: string, request: PageRequest): ListOrPage<TimelineEvent> {
  return core.store.transact((tx) => {
    const instance = getOwnInstance(tx, caller, id);
    const order = { by: { number: 'desc' }, keyOf: ({ number }: TimelineEvent) => [number] } as const;
    const events = timelineOf(instance.id);
    if (request.limit !== undefined || request.cursor !== undefined) return pageOf(tx, events, request, order);
    return { items: pageOf(tx, events, { limit: SHOWN_EVENTS }, order).items };
  });
}
