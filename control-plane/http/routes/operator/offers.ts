import { Type } from 'typebox';
import { createOffer, repriceOffer, withdrawOffer } from '../../../services/catalogue/offers.js';
import { allOffers, type OperatedOffer as Details } from '../../../services/catalogue/operated-offers.js';
import { OPERATOR, accountOf } from '../../access/policy.js';
import { body, flag, integer, list, micro, nullable, optional, text, uuid } from '../../schema/schemas.js';
import { Offer, heldMs, offerView } from '../offers.js';
import { idOf, NoContent, page, pageFields, viewPage, type Routes } from '../routes.js';

const OperatedOffer = Type.Object(
  {
    ...Offer.properties,
    unavailable_reason: nullable(text('Why the offer cannot be rented now; null: it can be rented, or is withdrawn')),
    rentals: list(
      Type.Object({
        price_per_hour_micro: micro('The price of one hour of GPU time at which they rent it'),
        instances: integer('How many instances rent it at this price'),
      }),
      'The prices at which instances that are not destroyed rent it, the lowest first',
    ),
  },
  { title: 'OperatedOffer' },
);

const prices = {
  price_per_hour_micro: micro('The price of one hour of GPU time, for all GPUs of the offer', {
    minimum: 0,
    maximum: 1_000_000_000_000,
  }),
  storage_price_per_gb_hour_micro: micro('The price of one GB of disk for one hour', {
    minimum: 0,
    maximum: 1_000_000_000,
  }),
};
const holding = optional({
  release_stopped_after_hours: nullable(
    integer('After how many hours the GPUs of a stopped instance are released; its disk stays; null: never', {
      minimum: 1,
      maximum: 8_760,
    }),
  ),
});
const OfferBody = body({
  machine_id: uuid('The id of the machine'),
  num_gpus: integer('The number of its GPUs that are rented together', { minimum: 1, maximum: 64 }),
  ...prices,
  ...holding,
});
const OfferQuery = Type.Object({
  ...pageFields,
  ...optional({
    machine_id: uuid('Only offers of this machine'),
    gpu_model: text('Only offers with this GPU model', { maxLength: 256 }),
    withdrawn: flag('True: only withdrawn offers; false: only the others of machines that were not removed'),
  }),
});
const TermsBody = body({ ...optional(prices), ...holding });

/** Routes for operators: offers and their prices. */
export const operatorOfferRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.get(
    '/v1/operator/offers',
    {
      config,
      schema: {
        operationId: 'listAllOffers',
        summary: 'List the offers in all states, newest first',
        querystring: OfferQuery,
        response: { 200: page(OperatedOffer) },
      },
    },
    (request) => viewPage(allOffers(platform, request.query), operatedOfferView),
  );
  app.post(
    '/v1/operator/offers',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND'] },
      schema: {
        operationId: 'createOffer',
        summary: 'Create an offer for GPUs of a machine',
        body: OfferBody,
        response: { 201: OperatedOffer },
      },
    },
    (request, reply) => {
      void reply.code(201);
      const { release_stopped_after_hours: hours, ...rest } = request.body;
      return operatedOfferView(createOffer(platform, accountOf(request), { ...rest, ...heldMs(hours) }));
    },
  );
  app.delete(
    '/v1/operator/offers/:id',
    {
      config: { ...config, refusals: ['OFFER_NOT_FOUND'] },
      schema: {
        operationId: 'withdrawOffer',
        summary: 'Withdraw an offer',
        description: 'Instances that rent it stay.',
        params: idOf('offer'),
        response: { 204: NoContent },
      },
    },
    (request, reply) => {
      withdrawOffer(platform, accountOf(request), request.params.id);
      void reply.code(204);
      return null;
    },
  );
  app.patch(
    '/v1/operator/offers/:id',
    {
      config: { ...config, refusals: ['OFFER_NOT_FOUND'] },
      schema: {
        operationId: 'updateOffer',
        summary: 'Change the terms of an offer for instances that are deployed from now on',
        params: idOf('offer'),
        body: TermsBody,
        response: { 200: OperatedOffer },
      },
    },
    (request) => {
      const { release_stopped_after_hours: hours, ...prices } = request.body;
      return operatedOfferView(
        repriceOffer(platform, accountOf(request), request.params.id, { ...prices, ...heldMs(hours) }),
      );
    },
  );
};

function operatedOfferView({ rentals, ...offer }: Details) {
  return { ...offerView(offer), rentals };
}
