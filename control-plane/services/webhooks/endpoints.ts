import { actorOf, type Act } from '../../domain/act.js';
import type { SessionCaller } from '../../domain/caller.js';
import { Refusal } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { query, rowById, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { checkLimit } from '../system/row-limits.js';
import { newestNumber } from '../events/read.js';
import { recordAct } from '../system/acts.js';
import { pageOf, type Page, type PageRequest } from '../system/pages.js';
import type { Core, Platform } from '../system/platform.js';
import { disableEndpoint } from './disable.js';
import { checkUrl } from './endpoint-url.js';
import { reschedule } from './schedule.js';
import { encryptSecret, newSecret, rotated } from './secrets.js';

export type Endpoint = Row<'webhook_endpoints'>;

/** What a renter chooses of an endpoint. A filter that is null wants everything. */
export interface EndpointSettings {
  url: string;
  description: string | null;
  types: readonly string[] | null;
  instance_id: string | null;
}

/** An answer that has the secret; no other has it. */
export interface WithSecret {
  endpoint: Endpoint;
  secret: string;
}

const HEALTHY = { failing_since: null, failures: 0, paused_until: null };

/**
 * Creates an endpoint, which gets the events from now on. Only this answer has the secret. Refuses a bad address (VALIDATION_FAILED), an
 * instance of nobody or of another organization (INSTANCE_NOT_FOUND), and more than 10 endpoints (LIMIT_REACHED).
 */
export function createEndpoint(platform: Platform, caller: SessionCaller, settings: EndpointSettings): WithSecret {
  const url = checkUrl(settings.url, platform.webhookNetworks);
  const secret = newSecret(platform.ids);
  return platform.store.transact((tx) => {
    const { organizationId } = caller;
    checkInstance(tx, organizationId, settings.instance_id);
    const its = query.selectFrom('webhook_endpoints').select('id').where('organization_id', '=', organizationId);
    checkLimit(tx, 'webhookEndpoints', its);
    const newest = newestNumber(tx, organizationId);
    const endpoint: Endpoint = {
      id: tx.id(),
      organization_id: organizationId,
      url,
      description: settings.description,
      types: typesText(settings.types),
      instance_id: settings.instance_id,
      secret_encrypted: encryptSecret(platform.encryption, secret),
      previous_secret_encrypted: null,
      previous_secret_until: null,
      delivered_to: newest,
      missed_to: newest,
      created_at: tx.now,
      disabled_at: null,
      disabled_reason: null,
      ...HEALTHY,
      next_attempt_at: null,
    };
    tx.run(query.insertInto('webhook_endpoints').values(endpoint));
    recordWebhookAct(tx, caller, 'webhook.create', endpoint.id);
    return { endpoint, secret };
  });
}

/** Lists the endpoints of the caller's organization, newest first. */
export function listEndpoints(core: Core, caller: SessionCaller, request: PageRequest): Page<Endpoint> {
  const its = query.selectFrom('webhook_endpoints').selectAll().where('organization_id', '=', caller.organizationId);
  return core.store.transact((tx) =>
    pageOf(tx, its, request, {
      by: { created_at: 'desc', id: 'desc' },
      keyOf: ({ created_at, id }) => [created_at, id],
    }),
  );
}

/** Returns an endpoint of the caller's organization. Refuses any other id with WEBHOOK_ENDPOINT_NOT_FOUND. */
export function readEndpoint(core: Core, caller: SessionCaller, id: string): Endpoint {
  return core.store.transact((tx) => ownEndpoint(tx, caller, id));
}

/**
 * Changes an endpoint. `enabled` switches it on, from the next event on, or off. Refuses like {@link createEndpoint}, and an unknown or
 * foreign id with WEBHOOK_ENDPOINT_NOT_FOUND.
 */
export function changeEndpoint(
  platform: Platform,
  caller: SessionCaller,
  id: string,
  { enabled, url, types, ...rest }: Partial<EndpointSettings> & { enabled?: boolean },
): Endpoint {
  const address = url === undefined ? {} : { ...HEALTHY, url: checkUrl(url, platform.webhookNetworks) };
  return platform.store.transact((tx) => {
    const endpoint = ownEndpoint(tx, caller, id);
    checkInstance(tx, caller.organizationId, rest.instance_id ?? null);
    const changes = { ...rest, ...address, ...(types === undefined ? {} : { types: typesText(types) }) };
    if (Object.keys(changes).length > 0) tx.run(updateRows('webhook_endpoints', changes, { id }));
    if (url !== undefined) reschedule(tx, id);
    if (enabled === false && endpoint.disabled_at === null) disableEndpoint(tx, endpoint, 'renter');
    if (enabled === true && endpoint.disabled_at !== null) enableEndpoint(tx, endpoint);
    recordWebhookAct(tx, caller, 'webhook.update', id);
    return ownEndpoint(tx, caller, id);
  });
}

/** Deletes an endpoint with its log. Refuses an unknown or foreign id with WEBHOOK_ENDPOINT_NOT_FOUND. */
export function deleteEndpoint(core: Core, caller: SessionCaller, id: string): void {
  core.store.transact((tx) => {
    ownEndpoint(tx, caller, id);
    tx.run(query.deleteFrom('webhook_deliveries').where('endpoint_id', '=', id));
    tx.run(query.deleteFrom('webhook_endpoints').where('id', '=', id));
    recordWebhookAct(tx, caller, 'webhook.delete', id);
  });
}

/**
 * Makes a new secret. The one before signs beside it for a day, and one before that no longer. Only this answer has the secret. Refuses
 * an unknown or foreign id with WEBHOOK_ENDPOINT_NOT_FOUND.
 */
export function rotateSecret(core: Core, caller: SessionCaller, id: string): WithSecret {
  const secret = newSecret(core.ids);
  return core.store.transact((tx) => {
    const changes = rotated(core.encryption, ownEndpoint(tx, caller, id), secret, tx.now);
    tx.run(updateRows('webhook_endpoints', changes, { id }));
    recordWebhookAct(tx, caller, 'webhook.rotate_secret', id);
    return { endpoint: ownEndpoint(tx, caller, id), secret };
  });
}

/** Records what a member has done to an endpoint. */
export function recordWebhookAct(
  tx: Tx,
  caller: SessionCaller,
  action: Extract<Act, `webhook.${string}`>,
  id: string,
): void {
  recordAct(tx, caller.organizationId, actorOf(caller), action, `webhook-endpoints/${id}`);
}

/** Returns an endpoint of the caller's organization. Refuses any other id with WEBHOOK_ENDPOINT_NOT_FOUND. */
export function ownEndpoint(tx: Tx, { organizationId }: SessionCaller, id: string): Endpoint {
  const endpoint = tx.get(rowById('webhook_endpoints', id));
  if (endpoint?.organization_id === organizationId) return endpoint;
  throw new Refusal('WEBHOOK_ENDPOINT_NOT_FOUND', 'no webhook endpoint of this organization has this id');
}

/** Refuses with WEBHOOK_DISABLED an endpoint that is switched off. */
export function requireEnabled({ disabled_at }: Endpoint): void {
  if (disabled_at === null) return;
  throw new Refusal('WEBHOOK_DISABLED', 'this endpoint is switched off; switch it on first, with "enabled": true');
}

/** Returns the types that an endpoint wants; null: all. */
export function typesOf({ types }: Pick<Endpoint, 'types'>): string[] | null {
  return types === null ? null : (JSON.parse(types) as string[]);
}

function typesText(types: readonly string[] | null): string | null {
  return types === null ? null : JSON.stringify(types);
}

function enableEndpoint(tx: Tx, { id, organization_id }: Endpoint): void {
  const newest = newestNumber(tx, organization_id);
  const on = { disabled_at: null, disabled_reason: null, delivered_to: newest, missed_to: newest };
  tx.run(updateRows('webhook_endpoints', { ...on, ...HEALTHY }, { id }));
}

function checkInstance(tx: Tx, organizationId: string, id: string | null): void {
  if (id === null) return;
  if (tx.get(rowById('instances', id))?.organization_id === organizationId) return;
  throw new Refusal('INSTANCE_NOT_FOUND', 'no instance of this organization has this id');
}
