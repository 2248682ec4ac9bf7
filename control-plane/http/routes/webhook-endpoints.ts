import { Type } from 'typebox';
import { RENTER_EVENT_TYPES, eventId } from '../../domain/event.js';
import { invalidField, type RefusalCode } from '../../domain/refusal.js';
import { DELIVERY_ERRORS, DELIVERY_STATES, DISABLED_REASONS, type DeliveryError } from '../../domain/webhook.js';
import {
  changeEndpoint,
  createEndpoint,
  deleteEndpoint,
  listEndpoints,
  readEndpoint,
  rotateSecret,
  typesOf,
  type Endpoint,
  type WithSecret,
} from '../../services/webhooks/endpoints.js';
import {
  listDeliveries,
  replayDelivery,
  replaySince,
  sendTest,
  type Delivery,
} from '../../services/webhooks/deliveries.js';
import { ADMIN, sessionOf } from '../access/policy.js';
import {
  body,
  choice,
  flag,
  integer,
  iso,
  isoOrNull,
  list,
  meaning,
  nameOf,
  nullable,
  optional,
  text,
  timestamp,
  uuid,
} from '../schema/schemas.js';
import { timeOf } from '../schema/times.js';
import { NoContent, PageQuery, idOf, listOrPage, pageFields, type Routes } from './routes.js';
import { answerList } from './whole-list.js';

const TYPES = 'The types of events that are delivered; null: all';

const WebhookEndpoint = Type.Object(
  {
    id: uuid('The id of the endpoint'),
    url: text('The address to which events are sent'),
    description: nullable(text('What it is for')),
    types: nullable(list(text('A type of events'), TYPES)),
    instance_id: nullable(uuid('The only instance whose events are delivered; null: all events')),
    enabled: flag('Whether events are delivered'),
    disabled_reason: nullable(
      choice(
        DISABLED_REASONS,
        'Why it is switched off: `renter`: somebody has; `gone`: it has answered 410; `failing`: it has only failed for five days; `secret_lost`: the operator has lost the secret. Null: it is on',
      ),
    ),
    disabled_at: nullable(timestamp('When it was switched off')),
    failing_since: nullable(timestamp('Since when every attempt has failed; null: the last one has succeeded')),
    previous_secret_until: nullable(timestamp('Until when the previous secret signs beside the present one')),
    created_at: timestamp('When the endpoint was created'),
  },
  { title: 'WebhookEndpoint' },
);

const SECRET = 'The secret that signs the messages: `whsec_` and base64';
const EndpointAndSecret = Type.Object({
  endpoint: meaning(WebhookEndpoint, 'The endpoint, as the list shows it'),
  secret: text(SECRET),
});

const WebhookDelivery = Type.Object(
  {
    id: uuid('The id of the delivery, which each attempt has as `webhook-id`'),
    endpoint_id: uuid('The id of the endpoint'),
    event_id: nullable(text('The id of the event; null for a test, and where events had expired')),
    type: text(
      'The type of the event; `webhook.test`: a test; `webhook.gap`: events had expired before their delivery',
    ),
    state: choice(DELIVERY_STATES, '`pending`: an attempt is made at `next_attempt_at`'),
    attempts: integer('The number of attempts'),
    next_attempt_at: nullable(timestamp('When the next attempt is due; null: there is none')),
    last_status: nullable(integer('The HTTP status of the last answer; null: there was none')),
    last_error: nullable(
      choice(DELIVERY_ERRORS, 'Why the last attempt has failed; a later release may add values. Null: it has not'),
    ),
    last_answer: nullable(text('The beginning of the body of the last answer')),
    created_at: timestamp('When the delivery was created'),
    finished_at: nullable(timestamp('When it has arrived or failed; null: it is pending')),
  },
  { title: 'WebhookDelivery' },
);

const URL_FIELD = text('The https address to which events are sent', { minLength: 1, maxLength: 2_048 });
const filters = {
  description: nullable(nameOf('What it is for', 200)),
  types: nullable(
    list(choice(RENTER_EVENT_TYPES, 'A type of events'), TYPES, { minItems: 1, maxItems: 100, uniqueItems: true }),
  ),
  instance_id: nullable(uuid('The only instance whose events are delivered; null: all events')),
};

const OF_SENDING: RefusalCode[] = ['WEBHOOK_DISABLED', 'LIMIT_REACHED'];

const setsUrl = ({ url }: { url?: string }) => url !== undefined;

/** Routes for admins: where the events of their organization are delivered. */
export const webhookEndpointRoutes: Routes = (app, platform) => {
  app.post(
    '/v1/webhook-endpoints',
    {
      config: { policy: ADMIN, proof: true, refusals: ['INSTANCE_NOT_FOUND', 'LIMIT_REACHED'] },
      schema: {
        operationId: 'createWebhookEndpoint',
        summary: 'Create a webhook endpoint',
        description:
          'Only this response contains the secret. The endpoint gets the events from now on, signed as the Standard Webhooks specification says. An organization has at most 10 endpoints.',
        body: body({ url: URL_FIELD, ...optional(filters) }),
        response: { 201: EndpointAndSecret },
      },
    },
    (request, reply) => {
      const { url, description = null, types = null, instance_id = null } = request.body;
      void reply.code(201);
      return withSecretView(createEndpoint(platform, sessionOf(request), { url, description, types, instance_id }));
    },
  );

  app.get(
    '/v1/webhook-endpoints',
    {
      config: { policy: ADMIN },
      schema: {
        operationId: 'listWebhookEndpoints',
        summary: "List the organization's webhook endpoints, newest first",
        querystring: PageQuery,
        response: { 200: listOrPage(WebhookEndpoint) },
      },
    },
    (request, reply) =>
      answerList(reply, request.query, (query) => listEndpoints(platform, sessionOf(request), query), endpointView),
  );

  app.get(
    '/v1/webhook-endpoints/:id',
    {
      config: { policy: ADMIN, refusals: ['WEBHOOK_ENDPOINT_NOT_FOUND'] },
      schema: {
        operationId: 'getWebhookEndpoint',
        summary: 'Read a webhook endpoint',
        params: idOf('webhook endpoint'),
        response: { 200: WebhookEndpoint },
      },
    },
    (request) => endpointView(readEndpoint(platform, sessionOf(request), request.params.id)),
  );

  app.patch(
    '/v1/webhook-endpoints/:id',
    {
      config: { policy: ADMIN, proof: setsUrl, refusals: ['WEBHOOK_ENDPOINT_NOT_FOUND', 'INSTANCE_NOT_FOUND'] },
      schema: {
        operationId: 'updateWebhookEndpoint',
        summary: 'Change a webhook endpoint',
        description:
          'An omitted field stays. An endpoint that is switched off gets nothing, and its pending deliveries fail. One that is switched on gets the events from then on.',
        params: idOf('webhook endpoint'),
        body: body(
          optional({ url: URL_FIELD, ...filters, enabled: flag('False switches it off, true switches it on') }),
        ),
        response: { 200: WebhookEndpoint },
      },
    },
    (request) => endpointView(changeEndpoint(platform, sessionOf(request), request.params.id, request.body)),
  );

  app.delete(
    '/v1/webhook-endpoints/:id',
    {
      config: { policy: ADMIN, refusals: ['WEBHOOK_ENDPOINT_NOT_FOUND'] },
      schema: {
        operationId: 'removeWebhookEndpoint',
        summary: 'Delete a webhook endpoint and its log',
        params: idOf('webhook endpoint'),
        response: { 204: NoContent },
      },
    },
    (request, reply) => {
      deleteEndpoint(platform, sessionOf(request), request.params.id);
      void reply.code(204);
      return null;
    },
  );

  app.post(
    '/v1/webhook-endpoints/:id/rotate-secret',
    {
      config: { policy: ADMIN, proof: true, refusals: ['WEBHOOK_ENDPOINT_NOT_FOUND'] },
      schema: {
        operationId: 'replaceWebhookSecret',
        summary: 'Make a new secret for a webhook endpoint',
        description:
          'Only this response contains the secret. For 24 hours, messages have a signature by the previous secret as well.',
        params: idOf('webhook endpoint'),
        response: { 200: EndpointAndSecret },
      },
    },
    (request) => withSecretView(rotateSecret(platform, sessionOf(request), request.params.id)),
  );
};

/** Routes for admins: the log of deliveries, tests and replays. */
export const webhookDeliveryRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/webhook-endpoints/:id/deliveries',
    {
      config: { policy: ADMIN, refusals: ['WEBHOOK_ENDPOINT_NOT_FOUND'] },
      schema: {
        operationId: 'listWebhookDeliveries',
        summary: 'List the deliveries of a webhook endpoint, newest first',
        description: 'A delivery stays for 30 days after its end, and an endpoint keeps its newest 2,000.',
        params: idOf('webhook endpoint'),
        querystring: Type.Object({
          ...pageFields,
          ...optional({ state: choice(DELIVERY_STATES, 'Only deliveries in this state') }),
        }),
        response: { 200: listOrPage(WebhookDelivery) },
      },
    },
    (request, reply) =>
      answerList(
        reply,
        request.query,
        (query) => listDeliveries(platform, sessionOf(request), request.params.id, query),
        deliveryView,
      ),
  );

  app.post(
    '/v1/webhook-endpoints/:id/test',
    {
      config: { policy: ADMIN, refusals: ['WEBHOOK_ENDPOINT_NOT_FOUND', ...OF_SENDING] },
      schema: {
        operationId: 'sendTestWebhook',
        summary: 'Send a test message to a webhook endpoint, once',
        description: 'Its type is `webhook.test`. The delivery tells how it went.',
        params: idOf('webhook endpoint'),
        response: { 202: WebhookDelivery },
      },
    },
    (request, reply) => {
      void reply.code(202);
      return deliveryView(sendTest(platform, sessionOf(request), request.params.id));
    },
  );

  app.post(
    '/v1/webhook-endpoints/:id/replay',
    {
      config: { policy: ADMIN, refusals: ['WEBHOOK_ENDPOINT_NOT_FOUND', 'EVENTS_EXPIRED', 'WEBHOOK_DISABLED'] },
      schema: {
        operationId: 'replayWebhookEvents',
        summary: 'Deliver events again: those since a time, or after an event',
        description:
          'Events that match the filters are delivered again, also those that have arrived. Give either `since` or `after_id`. A replay goes back at most 10,000 events.',
        params: idOf('webhook endpoint'),
        body: body(
          optional({
            since: text('A time in ISO 8601 with a time zone', { format: 'date-time' }),
            after_id: text('The id of an event, such as the last one that arrived', { maxLength: 64 }),
          }),
        ),
        response: {
          202: Type.Object({ events: integer('The number of events that are compared with the filters') }),
        },
      },
    },
    (request, reply) => {
      void reply.code(202);
      return replaySince(platform, sessionOf(request), request.params.id, beginningOf(request.body));
    },
  );

  app.post(
    '/v1/webhook-deliveries/:id/replay',
    {
      config: { policy: ADMIN, refusals: ['WEBHOOK_DELIVERY_NOT_FOUND', 'EVENTS_EXPIRED', ...OF_SENDING] },
      schema: {
        operationId: 'replayWebhookDelivery',
        summary: 'Send a delivery again, at once and with the same id',
        params: idOf('delivery'),
        response: { 202: WebhookDelivery },
      },
    },
    (request, reply) => {
      void reply.code(202);
      return deliveryView(replayDelivery(platform, sessionOf(request), request.params.id));
    },
  );
};

function beginningOf({
  since,
  after_id,
}: {
  since?: string;
  after_id?: string;
}): { after: string } | { since: number } {
  if (since !== undefined && after_id === undefined) return { since: timeOf('since', since) };
  if (since === undefined && after_id !== undefined) return { after: after_id };
  throw invalidField('', 'give either since or after_id');
}

function withSecretView({ endpoint, secret }: WithSecret) {
  return { endpoint: endpointView(endpoint), secret };
}

function endpointView(endpoint: Endpoint) {
  const { id, url, description, instance_id, disabled_reason } = endpoint;
  return {
    id,
    url,
    description,
    types: typesOf(endpoint),
    instance_id,
    enabled: endpoint.disabled_at === null,
    disabled_reason,
    disabled_at: isoOrNull(endpoint.disabled_at),
    failing_since: isoOrNull(endpoint.failing_since),
    previous_secret_until: isoOrNull(endpoint.previous_secret_until),
    created_at: iso(endpoint.created_at),
  };
}

function deliveryView(delivery: Delivery) {
  const { id, endpoint_id, epoch, number, type, state, attempts, last_status, last_answer, created_at } = delivery;
  const isPending = state === 'pending';
  return {
    id,
    endpoint_id,
    event_id:
      epoch === null || number === null
        ? null
        : eventId({
            epoch,
            number,
          }),
    type,
    state,
    attempts,
    last_status,
    last_error: delivery.last_error as DeliveryError | null,
    last_answer,
    next_attempt_at: isPending ? iso(Math.max(delivery.next_attempt_at, created_at)) : null,
    created_at: iso(created_at),
    finished_at: isoOrNull(delivery.finished_at),
  };
}
