import type { ApiKeyKind, Caller } from '../../domain/caller.js';
import { instancePorts } from '../../domain/template-port.js';
import { allowedActions, type InstanceAction, type InstanceStatus } from '../../domain/instance-state.js';
import type { SelectQueryBuilder } from 'kysely';
import { Remembered, oncePer } from '../../store/remembered.js';
import type { Row, Schema } from '../../store/schema.js';
import { query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { getOrganization } from '../accounts/organizations.js';
import { pageFrom, pageOf, type Order, type ListOrPage, type Page, type PageRequest } from '../system/pages.js';
import type { Platform } from '../system/platform.js';
import { readTemplateSnapshot, type TemplateDetails } from '../catalogue/stored-template.js';
import { findInstance, getOwnInstance, unknownInstance, type Instance } from '../instances/queries.js';

export type InstanceDetails = Omit<Instance, 'template_snapshot' | 'workload_encrypted' | 'access_token_encrypted'> & {
  access_token: string | null;
  allowed_actions: readonly InstanceAction[];
  stop_releases_gpus: boolean;
  deployed_via_api_key: { id: string; name: string; kind: ApiKeyKind; prefix: string; revoked: boolean } | null;
  template: TemplateDetails;
};

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
  return views;
});

/** The longest first page that is remembered. */
const MOST_LISTED = 200;

/** Which instances of an organization are not destroyed, newest first: at most one more than a remembered page has. */
export const liveInstances = oncePer((platform: Platform) => {
  const { store } = platform;
  const lists = new Remembered(store, MOST_ORGANIZATIONS, (organizationId) =>
    store.transact((tx) =>
      pageOf(tx, withPosition(liveIdsOf(organizationId)), { limit: MOST_LISTED + 1 }, INSTANCE_ORDER),
    ),
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
  return pages;
});

/** Returns an instance of the caller's organization; the same object while nothing changes. Refuses with INSTANCE_NOT_FOUND. */
export function getInstance(platform: Platform, caller: Caller, id: string): InstanceDetails {
  const instance = instanceViews(platform).of(id);
  if (instance?.organization_id !== caller.organizationId) throw unknownInstance();
  return instance;
}

type InstanceQuery = PageRequest & { include_destroyed: boolean };

/**
 * Lists the instances of the caller's organization, newest first; destroyed ones only with `include_destroyed`. A first page is the same
 * object while nothing changes.
 */
export function listInstances(platform: Platform, caller: Caller, request: InstanceQuery): Page<InstanceDetails> {
  const { organizationId } = caller;
  const { include_destroyed, limit, cursor } = request;
  const isPolled = !include_destroyed && cursor === undefined && limit !== undefined && limit <= MOST_LISTED;
  const known = isPolled ? instancePages(platform).of(organizationId, String(limit)) : undefined;
  return known ?? readInstances(platform, organizationId, request);
}

function readInstances(
  platform: Platform,
  organizationId: string,
  { include_destroyed, ...request }: InstanceQuery,
): Page<InstanceDetails> {
  const { store } = platform;
  if (include_destroyed) {
    // Of the past ones, which can be many, none is remembered.
    return store.transact((tx) => {
      const { items, ...rest } = pageOf(tx, withPosition(allOf(organizationId)), request, INSTANCE_ORDER);
      return { ...rest, items: items.map(({ position: _, ...row }) => describeInstance(platform, tx, row)) };
    });
  }
  return describeAll(
    platform,
    store.transact((tx) => pageOf(tx, withPosition(liveIdsOf(organizationId)), request, INSTANCE_ORDER)),
  );
}

function pageOfLive(platform: Platform, organizationId: string, limit: number): Page<{ id: string }> {
  const { items = [] } = liveInstances(platform).of(organizationId) ?? {};
  return { next_cursor: null, ...pageFrom(items, { limit }, INSTANCE_ORDER) };
}

function describeAll(platform: Platform, { items, ...rest }: Page<{ id: string }>): Page<InstanceDetails> {
  const views = instanceViews(platform);
  return { ...rest, items: items.map(({ id }) => views.of(id)).filter((view) => view !== undefined) };
}

/** The order of the index that the query uses. */
export const INSTANCE_ORDER: Order<Pick<Row<'instances'>, 'created_at'> & { position: number }> = {
  by: { created_at: 'desc', rowid: 'desc' },
  keyOf: ({ created_at, position }) => [created_at, position],
};

function allOf(organizationId: string) {
  return query.selectFrom('instances').selectAll().where('organization_id', '=', organizationId);
}

export function liveIdsOf(organizationId: string) {
  return query
    .selectFrom('instances')
    .select(['id', 'created_at'])
    .where('organization_id', '=', organizationId)
    .where('status', '<>', sql.lit('destroyed'));
}

function withPosition<Item>(rows: SelectQueryBuilder<Schema, 'instances', Item>) {
  return rows.select(sql<number>`rowid`.as('position'));
}

const SHOWN_EVENTS = 500;

/**
 * Lists the events of an instance, newest first: the last 500, or all that are kept if the request is paged. Refuses with
 * INSTANCE_NOT_FOUND.
 */
export function listEvents(
  platform: Platform,
  caller: Caller,
  id: string,
  request: PageRequest,
): ListOrPage<Row<'instance_events'>> {
  return platform.store.transact((tx) => {
    const instance = getOwnInstance(tx, caller, id);
    const events = query.selectFrom('instance_events').selectAll().where('instance_id', '=', instance.id);
    const order = { by: { id: 'desc' }, keyOf: (event: Row<'instance_events'>) => [event.id] } as const;
    if (request.limit !== undefined || request.cursor !== undefined) return pageOf(tx, events, request, order);
    return { items: pageOf(tx, events, { limit: SHOWN_EVENTS }, order).items };
  });
}

/** Statuses that show an error. In the others the error is kept but hidden, and shows again if the instance comes back. */
const SHOWS_ERRORS: readonly InstanceStatus[] = ['error', 'running', 'stopped'];

/** Returns an instance as its renter sees it, with the same fields in every status. */
export function describeInstance({ encryption }: Platform, tx: Tx, instance: Instance): InstanceDetails {
  const { template_snapshot, workload_encrypted: _, access_token_encrypted, ...row } = instance;
  const accessToken =
    access_token_encrypted && (encryption.decrypt('instance.access_token', access_token_encrypted) as string);
  const template = readTemplateSnapshot(template_snapshot);
  const opened = instancePorts(template.mode, template.ports).find(({ open_button }) => open_button);
  return {
    ...row,
    jupyter_url: withToken(row.jupyter_url, accessToken),
    open_url: opened?.guard === 'proxy' ? withToken(row.open_url, accessToken) : row.open_url,
    ...(SHOWS_ERRORS.includes(row.status) ? {} : { error_code: null, error_message: null }),
    access_token: accessToken,
    allowed_actions: allowedActions(row.status),
    stop_releases_gpus: getOrganization(tx, row.organization_id).payments_frozen_at !== null,
    deployed_via_api_key: row.api_key_id === null ? null : describeKey(tx, row.api_key_id),
    template,
  };
}

/** Adds the access token to a link, because hosts report links without it: they do not have the token. */
function withToken(link: string | null, accessToken: string | null): string | null {
  if (link === null || accessToken === null || !URL.canParse(link)) return link;
  const url = new URL(link);
  url.searchParams.set('token', accessToken);
  return url.href;
}

function describeKey(tx: Tx, id: string): InstanceDetails['deployed_via_api_key'] {
  const key = tx.get(query.selectFrom('api_keys').selectAll().where('id', '=', id));
  return key
    ? { id: key.id, name: key.name, kind: key.kind, prefix: key.prefix, revoked: key.revoked_at !== null }
    : null;
}
