import { Remembered, oncePer } from '../../store/remembered.js';
import { INSTANCE_ORDER, findInstance, liveIdsOf } from '../instances/queries.js';
import { pageFrom, pageOf, type Page } from '../system/pages.js';
import type { Core, Platform } from '../system/platform.js';
import { describeInstance, type InstanceDetails } from './instance-details.js';

/** The instances, and the organizations with their first pages, that are remembered at once. */
const MOST_INSTANCES = 10_000;
const MOST_ORGANIZATIONS = 1_000;

/** Instances by id, each remembered until a row changes that its renter sees. */
export const instanceViews = oncePer((platform: Platform) => {
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
});

/** The longest first page that is remembered. */
export const MOST_LISTED = 200;

/** Which instances of an organization are not destroyed, newest first: at most one more than a remembered page has. */
export const liveInstances = oncePer((core: Core) => {
  const { store } = core;
  const lists = new Remembered(store, MOST_ORGANIZATIONS, (organizationId) =>
    store.transact((tx) => pageOf(tx, liveIdsOf(organizationId), { limit: MOST_LISTED + 1 }, INSTANCE_ORDER)),
  );
  store.onChange('instance_lists', (organizationId) => lists.forget(organizationId));
  return lists;
});

/** The first pages of the instances that are not destroyed, by organization and limit: the lists that clients poll. */
export const instancePages = oncePer((platform: Platform) => {
  const { store } = platform;
  const pages = new Remembered(store, MOST_ORGANIZATIONS, (organizationId, limit) =>
    describeAll(platform, pageOfLive(platform, organizationId, Number(limit))),
  );
  store.onChange('instances', (_, organizationId) => pages.forget(organizationId));
  store.onChange('organizations', (organizationId) => pages.forget(organizationId));
  store.onChange('api_keys', (_, organizationId) => pages.forget(organizationId));
  const forgetAllWith = (machineId: string) =>
    pages.forgetIf(({ items }) => items.some(({ machine_id }) => machine_id === machineId));
  store.onChange('machine_names', forgetAllWith);
  store.onChange('offer_models', forgetAllWith);
  return pages;
});

function pageOfLive(core: Core, organizationId: string, limit: number): Page<{ id: string }> {
  const { items = [] } = liveInstances(core).of(organizationId) ?? {};
  return { next_cursor: null, ...pageFrom(items, { limit }, INSTANCE_ORDER) };
}

/** Returns the instances of a page of ids, in its order. */
export function describeAll(platform: Platform, { items, ...rest }: Page<{ id: string }>): Page<InstanceDetails> {
  const views = instanceViews(platform);
  return { ...rest, items: items.map(({ id }) => views.of(id)).filter((view) => view !== undefined) };
}
