import { ON_LIMIT } from '../../../domain/money/instance-limits.js';
import { changeInstance } from '../../../services/actions/change-instance.js';
import { MEMBER, callerOf } from '../../access/policy.js';
import { body, choice, integer, micro, nameOf, nullable, optional, text } from '../../schema/schemas.js';
import { timeOf } from '../../schema/times.js';
import { Instance, instanceView } from './instance-view.js';
import { idOf, type Routes } from '../routes.js';

export const Label = nullable(nameOf('The label', 64, { minLength: 0 }));

/** Limits that a renter can set. */
export const limitFields = {
  stop_at: nullable(
    text('When to stop the instance: a time in the future, in ISO 8601 with a time zone', { format: 'date-time' }),
  ),
  max_charge_micro: nullable(
    micro('What the instance may cost in all, GPU time and disk; no GPU time beyond that is charged', {
      minimum: 1,
      maximum: 1_000_000_000_000_000,
    }),
  ),
  idle_stop_minutes: nullable(
    integer('After how many idle minutes to stop the instance; you are told ten minutes before', {
      minimum: 1,
      maximum: 10_080,
    }),
  ),
  on_limit: nullable(
    choice(ON_LIMIT, 'What these limits do: `stop` (also null) keeps the disk, which is charged; `destroy` does not'),
  ),
};

/** Returns the limits of a request as the services know them; what is absent stays absent. */
export function limitsFrom<Limits extends { stop_at?: string | null }>({
  stop_at,
  ...rest
}: Limits): Omit<Limits, 'stop_at'> & { stop_at?: number | null } {
  if (stop_at === undefined) return rest;
  return { ...rest, stop_at: stop_at === null ? null : timeOf('stop_at', stop_at) };
}

const expect = nullable(
  integer(
    'How many instances these limits may stop at once because they are used up already: 0 or 1. With 0, limits that would stop the instance are refused with INVALID_STATE, whose `would_stop` is 1. Null, as if left out: they are set, and stop it',
    { minimum: 0, maximum: 1 },
  ),
);
const SettingsBody = body(optional({ label: Label, ...limitFields, expect }));

/** The route that changes the label and the limits of an instance. */
export const instanceSettingsRoutes: Routes = (app, platform) => {
  app.patch(
    '/v1/instances/:id',
    {
      config: { policy: MEMBER, refusals: ['INSTANCE_NOT_FOUND', 'INVALID_STATE', 'SPEND_LIMIT_REACHED'] },
      schema: {
        operationId: 'updateInstance',
        summary: 'Change the label and the limits of an instance',
        description:
          'What is absent stays; null takes a limit away. Limits concern what is used from now on; earlier ones hold for the time before, also if its host reports it later. An API key with caps loosens no limits of an instance whose last run it has not started.',
        params: idOf('instance'),
        body: SettingsBody,
        response: { 200: Instance },
      },
    },
    (request) => {
      const { expect: expected = null, ...settings } = request.body;
      return instanceView(
        changeInstance(platform, callerOf(request), request.params.id, limitsFrom(settings), expected),
      );
    },
  );
};
