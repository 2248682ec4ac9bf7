import { Type, type TSchema } from 'typebox';
import type { Caps } from '../../../domain/money/spend-cap.js';
import { readSpendCaps, setSpendCaps, type CapDetails } from '../../../services/billing/caps/spend-caps.js';
import { MONEY, READ_MONEY, callerOf, sessionOf } from '../../access/policy.js';
import { body, integer, isoOrNull, micro, nullable, optional, timestamp } from '../../schema/schemas.js';
import { idOf, type Routes } from '../routes.js';

const cap = (description: string) => nullable(micro(description, { minimum: 0, maximum: 1_000_000_000_000_000 }));

/** The caps of an organization or an API key. */
export const caps = {
  burn_per_hour_micro: cap(
    'The most that one hour of the instances and their disks may cost, checked at a deploy and a start; null: no cap',
  ),
  day_micro: cap('The most that may be spent in a UTC day; null: no cap'),
  month_micro: cap('The most that may be spent in a calendar month (UTC); null: no cap'),
} satisfies Record<keyof Caps, TSchema>;

const SpendCaps = Type.Object(
  {
    ...caps,
    set_at: nullable(timestamp('When the caps were set; null: there are none')),
    present_burn_per_hour_micro: micro('What one hour of the instances and their disks costs now'),
    spent_day_micro: micro('What was spent so far in the present UTC day'),
    spent_month_micro: micro('What was spent so far in the present calendar month'),
  },
  { title: 'SpendCaps' },
);
const expect = nullable(
  integer(
    'The most instances that these caps may stop at once because they are used up already, starts that they undo included; if there are more, the request is refused with INVALID_STATE, whose `would_stop` says how many. Null, as if left out: they are set, however many it stops',
    { minimum: 0, maximum: 1_000_000 },
  ),
);
const CapsBody = body({ ...caps, ...optional({ expect }) });

const DESCRIPTION =
  'When a cap on the day or the month is used up, running instances are stopped and charged no further for GPU time; their disks and GPUs are kept, and disks go on being charged. The caps concern what is used from now on; earlier ones hold for the time before, also if its host reports it later. Starts under way that the caps would refuse are undone. While an instance is being created, a cap that would leave less than five minutes of what runs is refused.';
const OF_KEY =
  'The caps of an API key count the runs that the key has caused: by a deploy, by a start, whoever has deployed the instance, and by a schedule that it has set. They count also the disks of what it has deployed.';

/** Routes that show and set what an organization and its API keys may spend. */
export const spendCapRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/orgs/current/spend-caps',
    {
      config: { policy: READ_MONEY },
      schema: {
        operationId: 'getSpendCaps',
        summary: 'Get what the organization may spend, and has spent',
        response: { 200: SpendCaps },
      },
    },
    (request) => view(readSpendCaps(platform, callerOf(request), null)),
  );

  app.put(
    '/v1/orgs/current/spend-caps',
    {
      config: { policy: MONEY, refusals: ['INVALID_STATE'] },
      schema: {
        operationId: 'replaceSpendCaps',
        summary: 'Set what the organization may spend',
        description: DESCRIPTION,
        body: CapsBody,
        response: { 200: SpendCaps },
      },
    },
    (request) => view(setSpendCaps(platform, sessionOf(request), null, request.body, request.body.expect ?? null)),
  );

  app.get(
    '/v1/api-keys/:id/spend-caps',
    {
      config: { policy: READ_MONEY, refusals: ['API_KEY_NOT_FOUND'] },
      schema: {
        operationId: 'getApiKeySpendCaps',
        summary: 'Get what an API key may spend, and has spent',
        description: OF_KEY,
        params: idOf('API key'),
        response: { 200: SpendCaps },
      },
    },
    (request) => view(readSpendCaps(platform, callerOf(request), request.params.id)),
  );

  app.put(
    '/v1/api-keys/:id/spend-caps',
    {
      config: { policy: MONEY, refusals: ['API_KEY_NOT_FOUND', 'INVALID_STATE'] },
      schema: {
        operationId: 'replaceApiKeySpendCaps',
        summary: 'Set what an API key may spend',
        description: `${DESCRIPTION} ${OF_KEY}`,
        params: idOf('API key'),
        body: CapsBody,
        response: { 200: SpendCaps },
      },
    },
    (request) => {
      const { params, body: set } = request;
      return view(setSpendCaps(platform, sessionOf(request), params.id, set, set.expect ?? null));
    },
  );
};

function view({ set_at, ...rest }: CapDetails) {
  return { ...rest, set_at: isoOrNull(set_at) };
}
