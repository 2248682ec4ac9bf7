import { Type, type TSchema } from 'typebox';
import type { RefusalCode } from '../../../domain/refusal.js';
import { estimate } from '../../../services/actions/estimate.js';
import { ERRORS } from '../../errors/error-codes.js';
import { READ_BY_POST, callerOf } from '../../access/policy.js';
import { choice, isoOrNull, list, micro, nullable, optional, text, timestamp } from '../../schema/schemas.js';
import { limitsFrom } from './instance-settings.js';
import { DEPLOY_LIMIT_BYTES, DEPLOY_REFUSALS, DeployBody } from './instances.js';
import type { Routes } from '../routes.js';

/** An estimate has no idempotency key. */
const FORESEEN: readonly RefusalCode[] = DEPLOY_REFUSALS.filter((code) => code !== 'IDEMPOTENCY_KEY_REUSED');

/** Returns the fields that errors with these codes add. */
function fieldsOf(codes: readonly RefusalCode[]): Record<string, TSchema> {
  return Object.fromEntries(codes.flatMap((code) => Object.entries(ERRORS[code].extra ?? {})));
}

const NO_OFFER = 'null: no offer with this id is on the market';

const Estimate = Type.Object(
  {
    gpu_per_hour_micro: nullable(micro(`The charge for an hour in which the instance runs; ${NO_OFFER}`)),
    disk_per_hour_micro: nullable(micro(`The charge for an hour in which the instance is stopped; ${NO_OFFER}`)),
    burn_per_hour_micro: nullable(
      micro(`The cost of one hour of all instances and disks of the organization after the deploy; ${NO_OFFER}`),
    ),
    ...optional({
      charged_per_hour_micro: nullable(
        micro(`What one hour really charges after the deploy, without the disks of instances that run; ${NO_OFFER}`),
      ),
    }),
    required_micro: nullable(micro(`The balance that the deploy needs; ${NO_OFFER}`)),
    balance_micro: micro('The balance of the organization, with everything charged up to now'),
    balance_lasts_until: nullable(
      timestamp(
        'When the balance is used up by what is really charged, if the instance runs from now on; null: never, or no offer with this id is on the market',
      ),
    ),
    refusals: list(
      Type.Object(
        {
          code: choice(FORESEEN, 'The error code; a later release can add values'),
          message: text('What is wrong, in words for people'),
          ...optional(fieldsOf(FORESEEN)),
        },
        { title: 'ForeseenRefusal' },
      ),
      'Every error that the deploy would meet, in the order of its checks, each with the fields of its code; empty: the deploy would be accepted',
    ),
    warning: nullable(
      text(
        'Why the instance would go to `error` at once although the deploy is accepted: its image was too slow to pull',
      ),
    ),
    ...optional({
      driver_warning: nullable(
        text(
          'What the image requires of the NVIDIA driver and the machine does not have, so that the start will probably fail; the deploy is accepted all the same. Known once an instance of the organization has pulled the image',
        ),
      ),
    }),
  },
  { title: 'Estimate' },
);

/** The route that says what a deploy would cost and meet. */
export const estimateRoutes: Routes = (app, platform) => {
  app.post(
    '/v1/instances/estimate',
    {
      bodyLimit: DEPLOY_LIMIT_BYTES,
      config: { policy: READ_BY_POST },
      schema: {
        operationId: 'estimateInstance',
        summary: 'Say what a deploy would cost, and every error that it would meet',
        description: 'Takes the body of a deploy. Keeps, reserves and charges nothing.',
        body: DeployBody,
        response: { 200: Estimate },
      },
    },
    (request) => {
      const choice = { ssh_key_id: null, stop_at: null, ...limitsFrom(request.body) };
      const { refusals, balance_lasts_until, ...rest } = estimate(platform, callerOf(request), choice);
      return {
        ...rest,
        balance_lasts_until: isoOrNull(balance_lasts_until),
        refusals: refusals.map(({ code, message, extra }) => ({ code, message, ...extra })),
      };
    },
  );
};
