import { Remembered } from '../../store/remembered.js';
import { INSTANCE_ORDER, findInstance, liveIdsOf, type Instance } from '../instances/queries.js';
import { pageFrom, pageOf, type Page } from '../system/pages.js';
import type { Core, Platform } from '../system/platform.js';
import { describeInstance, type InstanceDetails } from './instance-details.js';

/** The instances, and the organizations with their first pages, that are remembered at once. */
const MOST_INSTANCES = 10_000;
const MOST_ORGANIZATIONS = 1_000;

/** What is remembered of instances. */
export interface HasInstanceMemory {
  instanceViews: ReturnType<typeof makeInstanceViews>;
  instanceLists: ReturnType<typeof makeInstanceLists>;
  instancePages: ReturnType<typeof makeInstancePages>;
}

/** Makes the memory of instances by id, each remembered until a row changes that its renter sees. */
export function makeInstanceViews(platform: Platform): Remembered<InstanceDetails> {
  const { store } = platform;
  const views = new Remembered(store, MOST_INSTANCES, (id) =>
    store.transact((tx) => {
      const instance = findInstance(tx, id);
      return instance && describeInstance(platform, tx, instance);
    }),
  );
  store.onChange('instances', (id) => views.forget(id));
  const forgetAllOf = (organizationId: string) => views.forgetIf((view) => view.organization_id === organizationId);
  store.onChange('organizations', forgetAllOf);
  store.onChange('api_keys', (_, organizationId) => forgetAllOf(organizationId));
  const forgetAllOn = (machineId: string) => views.forgetIf((view) => view.machine_id === machineId);
  store.onChange('machine_names', forgetAllOn);
  store.onChange('offer_models', forgetAllOn);
  return views;
}

/** The longest first page that is remembered. */
export const MOST_LISTED = 200;

type LiveInstance = Pick<Instance, 'id' | 'created_at'> & { position: number };

/**
 * Makes the memory of which instances of an organization are not destroyed, newest first: at most one more than a remembered page has.
 */
export function makeInstanceLists({ store }: Pick<Core, 'store'>): Remembered<Page<LiveInstance>> {
  const lists = new Remembered(store, MOST_ORGANIZATIONS, (organizationId) =>
    store.transact((tx) => pageOf(tx, liveIdsOf(organizationId), { limit: MOST_LISTED + 1 }, INSTANCE_ORDER)),
  );
  store.onChange('instance_lists', (organizationId) => lists.forget(organizationId));
  return lists;
}

/** Makes the memory of the first pages of the instances that are not destroyed, by organization and limit: the lists that clients poll. */
export function makeInstancePages(
  { store }: Pick<Core, 'store'>,
  lists: HasInstanceMemory['instanceLists'],
  views: HasInstanceMemory['instanceViews'],
): Remembered<Page<InstanceDetails>> {
  const pages = new Remembered(store, MOST_ORGANIZATIONS, (organizationId, limit) =>
    describeAll(views, pageOfLive(lists, organizationId, Number(limit))),
  );
  store.onChange('instances', (_, organizationId) => pages.forget(organizationId));
  store.onChange('organizations', (organizationId) => pages.forget(organizationId));
  store.onChange('api_keys', (_, organizationId) => pages.forget(organizationId));
  const forgetAllWith = (machineId: string) =>
    pages.forgetIf(({ items }) => items.some(({ machine_id }) => machine_id === machineId));
  store.onChange('machine_names', forgetAllWith);
  store.onChange('offer_models', forgetAllWith);
  return pages;
}

function pageOfLive(
  lists: HasInstanceMemory['instanceLists'],
  organizationId: string,
  limit: number,
): Page<LiveInstance> {
  const { items = [] } = lists.of(organizationId) ?? {};
  return { next_cursor: null, ...pageFrom(items, { limit }, INSTANCE_ORDER) };
}

/** Returns the instances of a page of ids, in its order. */
export function describeAll(
  views: HasInstanceMemory['instanceViews'],
  { items, ...rest }: Page<{ id: string }>,
): Page<InstanceDetails> {
  return { ...rest, items: items.map(({ id }) => views.of(id)).filter((view) => view !== undefined) };
}
