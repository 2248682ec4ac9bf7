import { Type } from 'typebox';
import { readLogs, readLogsAfter } from '../../../services/actions/logs.js';
import { getInstance, listEvents, listInstances } from '../../../services/actions/read.js';
import { READ, callerOf, refuseIfEnded } from '../../access/policy.js';
import { sendBody, textOf } from '../../answers/remembered-bodies.js';
import { flag, formed, integer, iso, list, nullable, optional, text, timestamp } from '../../schema/schemas.js';
import { Instance, instanceView } from './instance-view.js';
import { idOf, listOrPage, pageFields, PageQuery, viewPage, type Routes } from '../routes.js';
import { answerRememberedList } from '../whole-list.js';

const Event = Type.Object(
  {
    at: timestamp('When it happened'),
    kind: text('The kind of the event; later releases can add more'),
    message: text('A sentence that describes the event'),
  },
  { title: 'InstanceEvent' },
);

const Logs = Type.Object({
  lines: list(Type.String(), 'Standard output and standard error of the workload, oldest line first'),
  ...optional({
    next_after: text('The `after` of the next request; absent where the request had none'),
    lines_missed: nullable(
      flag(
        'Whether lines between `after` and these are no longer kept, because more than 1,000 were written; null: this is not known, as while the host is away; absent where the request had no `after`',
      ),
    ),
  }),
});

const instanceText = textOf(Instance, instanceView);

/** Routes that read instances, their logs and their events. */
export const instanceReadingRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/instances',
    {
      config: { policy: READ, hasETag: true },
      schema: {
        operationId: 'listInstances',
        summary: "List the organization's instances, newest first",
        querystring: Type.Object({
          ...pageFields,
          include_destroyed: flag('Whether to include destroyed instances', { default: false }),
        }),
        response: { 200: listOrPage(Instance) },
      },
    },
    (request, reply) =>
      answerRememberedList(request, reply, (query) => listInstances(platform, callerOf(request), query), instanceText),
  );

  app.get(
    '/v1/instances/:id',
    {
      config: { policy: READ, refusals: ['INSTANCE_NOT_FOUND'], hasETag: true },
      schema: {
        operationId: 'getInstance',
        summary: 'Get an instance',
        params: idOf('instance'),
        response: { 200: Instance },
      },
    },
    (request, reply) => {
      const instance = getInstance(platform, callerOf(request), request.params.id);
      return sendBody(request.headers, reply, instance, () => instanceText(instance));
    },
  );

  app.get(
    '/v1/instances/:id/logs',
    {
      config: { policy: READ, refusals: ['INSTANCE_NOT_FOUND'] },
      schema: {
        operationId: 'getInstanceLogs',
        summary: 'Get the last lines of the output of an instance',
        description:
          'The list is empty until the workload has run for the first time. With `after`, the answer says where the next request goes on, so that a client that polls gets each line once.',
        params: idOf('instance'),
        querystring: Type.Object({
          tail: integer('The maximum number of lines', { minimum: 1, maximum: 1000, default: 200 }),
          ...optional({
            after: formed(
              'The `next_after` of the previous answer: the first lines after it. Empty: the last lines, and where to go on',
              '^[A-Za-z0-9_-]{0,1024}$',
              'be the `next_after` of an earlier answer, or empty',
            ),
          }),
        }),
        response: { 200: Logs },
      },
    },
    async (request) => {
      const { tail, after } = request.query;
      const of = [platform, callerOf(request), request.params.id] as const;
      const read =
        after === undefined ? { lines: [...(await readLogs(...of, tail))] } : await readLogsAfter(...of, after, tail);
      refuseIfEnded(request);
      return read;
    },
  );

  app.get(
    '/v1/instances/:id/events',
    {
      config: { policy: READ, refusals: ['INSTANCE_NOT_FOUND'] },
      schema: {
        operationId: 'listInstanceEvents',
        summary: 'List the events of an instance, newest first',
        description: 'Returns the last 500 events; with `limit` or `cursor`, also older ones.',
        params: idOf('instance'),
        querystring: PageQuery,
        response: { 200: listOrPage(Event) },
      },
    },
    (request) =>
      viewPage(listEvents(platform, callerOf(request), request.params.id, request.query), (event) => ({
        ...event,
        at: iso(event.at),
      })),
  );
};
