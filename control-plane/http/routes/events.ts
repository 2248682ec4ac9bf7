import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { EVENT_TYPES, OPERATORS, STREAM_OF, type EventType } from '../../domain/event.js';
import type { RefusalCode } from '../../domain/refusal.js';
import { listStream, placeAfter, type EventQuery } from '../../services/events/list.js';
import { filterOf } from '../../services/events/slice.js';
import type { App } from '../../services/parts/parts.js';
import { eventOf } from '../events/event-models.js';
import { EVENT_STREAM, type EventStreams } from '../events/event-streams.js';
import { OPERATOR, READ, callerOf } from '../access/policy.js';
import { flag, list, nullable, optional, text, uuid } from '../schema/schemas.js';
import { pageFields, type Routes } from './routes.js';

const EventQueryFields = Type.Object({
  ...pageFields,
  ...optional({
    type: text('Only events of these types, with commas between them', { maxLength: 2_000 }),
    instance_id: uuid('Only events about this instance'),
    after: text(
      'The id of an event: a page has the events after it, the oldest first, and a stream begins with them. `0.0` stands before the first event',
    ),
  }),
});

const OperatorEventQuery = Type.Object({
  ...EventQueryFields.properties,
  ...optional({ machine_id: uuid('Only events about this machine') }),
});

const EventHeaders = Type.Object(
  optional({
    'last-event-id': text('Of a stream: the id of the last event that was received; it takes precedence over `after`'),
  }),
);

function answersWith(types: readonly EventType[]) {
  return {
    content: {
      'application/json': {
        schema: Type.Object({
          items: list(
            eventOf(types),
            'The page: at most `limit` events, or 100 where no `limit` was given; with a filter there can be fewer although more follow',
          ),
          next_cursor: nullable(text('The `cursor` of the next page; null on the last, and with `after`')),
          last_id: nullable(
            text('The `after` of a later request for what comes then; null on a page that was asked for by `cursor`'),
          ),
          has_more: flag('Whether there are events after `last_id` now'),
        }),
      },
      [EVENT_STREAM]: {
        schema: text(
          'Server-sent events: `id` is the id of the event, `event` its type, and `data` one line of JSON with all of it. The event `expired` says that events were deleted which this reader had not reached',
        ),
      },
    },
  };
}

const DESCRIPTION =
  'With `Accept: text/event-stream` a stream of what happens from now on, or after `Last-Event-ID`; otherwise a page, the newest events first, or those after `after`, the oldest first.';
const REFUSALS: readonly RefusalCode[] = ['EVENTS_EXPIRED', 'STREAM_LIMIT_REACHED'];

const typesOf = (stream: 'organization' | 'operators') => EVENT_TYPES.filter((type) => STREAM_OF[type] === stream);

/** Routes that read what has happened, as pages of JSON or as a stream. */
export const eventRoutes =
  (streams: EventStreams): Routes =>
  (app, platform) => {
    app.addHook('preClose', async () => streams.close());

    app.get(
      '/v1/events',
      {
        config: { policy: READ, refusals: REFUSALS, hasStream: true },
        schema: {
          operationId: 'listEvents',
          summary: 'List the events of the organization, or receive them as they happen',
          description: DESCRIPTION,
          headers: EventHeaders,
          querystring: EventQueryFields,
          response: { 200: answersWith(typesOf('organization')) },
        },
      },
      (request, reply) => answer(platform, streams, request, reply, callerOf(request).organizationId) as never,
    );

    app.get(
      '/v1/operator/events',
      {
        config: { policy: OPERATOR, refusals: REFUSALS, hasStream: true },
        schema: {
          operationId: 'listOperatorEvents',
          summary: 'List the events for operators, or receive them as they happen',
          description: DESCRIPTION,
          headers: EventHeaders,
          querystring: OperatorEventQuery,
          response: { 200: answersWith(typesOf('operators')) },
        },
      },
      (request, reply) => answer(platform, streams, request, reply, OPERATORS) as never,
    );
  };

function answer(
  platform: App,
  streams: EventStreams,
  request: FastifyRequest,
  reply: FastifyReply,
  stream: string,
): FastifyReply {
  const query = queryOf(request, stream);
  if (!wantsStream(request.headers.accept)) {
    // As text: the schema of all types is for the document, and would be slow to serialize by.
    return reply.type('application/json; charset=utf-8').send(JSON.stringify(listStream(platform, stream, query)));
  }
  const lastId = request.headers['last-event-id'];
  const after = typeof lastId === 'string' && lastId !== '' ? lastId : query.after;
  const reading = { stream, filter: filterOf(query), from: placeAfter(platform, stream, after) };
  void reply.type(EVENT_STREAM).header('X-Accel-Buffering', 'no');
  if (request.method === 'HEAD') return reply.send('');
  // The connection ends with the stream, so that a control plane that stops need not wait for the next request on it.
  void reply.header('Connection', 'close');
  return reply.send(streams.start(request, reply, reading));
}

/** Returns the fields of the query that the route declares. Others are in the request, too, and unchecked: an id can be a list. */
function queryOf(request: FastifyRequest, stream: string): EventQuery {
  const { machine_id, ...query } = request.query as EventQuery;
  return stream === OPERATORS && machine_id !== undefined ? { ...query, machine_id } : query;
}

/** Tells whether a client accepts server-sent events, by its header `Accept`. */
function wantsStream(accept = ''): boolean {
  return accept.split(',').some((range) => {
    const [type, ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    return type === EVENT_STREAM && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}
