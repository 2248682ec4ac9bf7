import { Type } from 'typebox';
import { MOST_ENTRIES, SCHEDULE_ACTIONS, WEEKDAYS } from '../../../domain/instances/schedule.js';
import {
  getSchedule,
  removeSchedule,
  replaceSchedule,
  type ScheduleDetails,
} from '../../../services/actions/schedules.js';
import { MEMBER, READ, callerOf } from '../../access/policy.js';
import { body, choice, formed, iso, list, nullable, text, timestamp } from '../../schema/schemas.js';
import { NoContent, idOf, type Routes } from '../routes.js';

const action = choice(SCHEDULE_ACTIONS, 'What is done: the instance is started or stopped');

const ScheduleEntry = Type.Object(
  {
    action,
    days: list(choice(WEEKDAYS, 'A day of the week'), 'The days on which it is done', {
      minItems: 1,
      maxItems: 7,
      uniqueItems: true,
    }),
    at: formed(
      'The local time at which it is done: HH:MM',
      '^([01]\\d|2[0-3]):[0-5]\\d$',
      'be a time from 00:00 to 23:59, as HH:MM',
    ),
  },
  { additionalProperties: false },
);

const TIME_ZONE = 'A name of the IANA time zone database, such as `Europe/Berlin` or `UTC`';

const InstanceSchedule = Type.Object(
  {
    time_zone: nullable(text(`${TIME_ZONE}; null: the instance has no schedule`)),
    entries: list(ScheduleEntry, 'What is done, and when'),
    next: nullable(
      Type.Object(
        { action, at: timestamp('When it is done') },
        { description: 'What is done next; null: the instance has no schedule' },
      ),
    ),
  },
  { title: 'InstanceSchedule' },
);

/** Routes for the times of the week at which an instance is started and stopped. */
export const instanceScheduleRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/instances/:id/schedule',
    {
      config: { policy: READ, refusals: ['INSTANCE_NOT_FOUND'] },
      schema: {
        operationId: 'getInstanceSchedule',
        summary: 'Get the times of the week at which an instance is started and stopped',
        params: idOf('instance'),
        response: { 200: InstanceSchedule },
      },
    },
    (request) => scheduleView(getSchedule(platform, callerOf(request), request.params.id)),
  );

  app.put(
    '/v1/instances/:id/schedule',
    {
      config: { policy: MEMBER, refusals: ['INSTANCE_NOT_FOUND', 'INVALID_STATE'] },
      schema: {
        operationId: 'replaceInstanceSchedule',
        summary: 'Start and stop an instance at times of the week',
        description:
          'Replaces an earlier schedule. A local time that clocks skip is taken at the moment at which they are set forward; one that comes twice, at the first. A start that is refused becomes the event `instance.schedule_refused`, and is not tried again before the next one.',
        params: idOf('instance'),
        body: body({
          time_zone: formed(
            TIME_ZONE,
            '^[A-Za-z][A-Za-z0-9_+/-]*$',
            'be a time zone of the IANA database, such as Europe/Berlin or UTC',
            { maxLength: 64 },
          ),
          entries: list(ScheduleEntry, 'What is done, and when; no two may contradict each other', {
            minItems: 1,
            maxItems: MOST_ENTRIES,
          }),
        }),
        response: { 200: InstanceSchedule },
      },
    },
    (request) => scheduleView(replaceSchedule(platform, callerOf(request), request.params.id, request.body)),
  );

  app.delete(
    '/v1/instances/:id/schedule',
    {
      config: { policy: MEMBER, refusals: ['INSTANCE_NOT_FOUND'] },
      schema: {
        operationId: 'removeInstanceSchedule',
        summary: 'Start and stop an instance by no schedule any more',
        description: 'A start or stop that is under way goes on.',
        params: idOf('instance'),
        response: { 204: NoContent },
      },
    },
    (request, reply) => {
      removeSchedule(platform, callerOf(request), request.params.id);
      void reply.code(204);
      return null;
    },
  );
};

function scheduleView({ time_zone, entries, next }: ScheduleDetails) {
  return { time_zone, entries, next: next && { action: next.action, at: iso(next.at) } };
}
