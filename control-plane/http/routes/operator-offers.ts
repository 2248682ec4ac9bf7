import { Type } from 'typebox';
import { allOffers, createOffer, repriceOffer, withdrawOffer } from '../../services/catalogue/offers.js';
import { OPERATOR, accountOf } from '../policy.js';
import { body, integer, micro, nullable, optional, text, uuid } from '../schemas.js';
import { Offer, heldMs, offerView } from './offers.js';
import { idOf, NoContent, PageQuery, page, viewPage, type Routes } from './routes.js';

const OperatedOffer = Type.Object(
  {
    ...Offer.properties,
    unavailable_reason: nullable(text('Why it cannot be rented now; null where it can, or is withdrawn')),
  },
  { title: 'OperatedOffer' },
);

const prices = {
  price_per_hour_micro: micro('The price of an hour of GPU time, for all of its GPUs', {
    minimum: 0,
    maximum: 1_000_000_000_000,
  }),
  storage_price_per_gb_hour_micro: micro('The price of a GB of disk for an hour', {
    minimum: 0,
    maximum: 1_000_000_000,
  }),
};
const holding = optional({
  release_stopped_after_hours: nullable(
    integer(
      'After how many hours a stopped instance gives its GPUs back to the market and keeps its disk; null: never',
      {
        minimum: 1,
        maximum: 8_760,
      },
    ),
  ),
});
const OfferBody = body({
  machine_id: uuid('The machine'),
  num_gpus: integer('How many of its GPUs are rented together', { minimum: 1, maximum: 64 }),
  ...prices,
  ...holding,
});
const TermsBody = body({ ...optional(prices), ...holding });
/** Operators: what of the machines is on the market, and at which price. */
export const operatorOfferRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.get(
    '/v1/operator/offers',
    {
      config,
      schema: {
        operationId: 'listAllOffers',
        summary: 'List the offers in every state, newest first',
        querystring: PageQuery,
        response: { 200: page(OperatedOffer) },
      },
    },
    (request) => viewPage(allOffers(platform, request.query), offerView),
  );
  app.post(
    '/v1/operator/offers',
    {
      config: { ...config, refusals: ['MACHINE_NOT_FOUND'] },
      schema: {
        operationId: 'createOffer',
        summary: 'Offer GPUs of a machine at a price',
        body: OfferBody,
        response: { 201: OperatedOffer },
      },
    },
    (request, reply) => {
      void reply.code(201);
      const { release_stopped_after_hours: hours, ...rest } = request.body;
      return offerView(createOffer(platform, accountOf(request), { ...rest, ...heldMs(hours) }));
    },
  );
  app.delete(
    '/v1/operator/offers/:id',
    {
      config: { ...config, refusals: ['OFFER_NOT_FOUND'] },
      schema: {
        operationId: 'withdrawOffer',
        summary: 'Withdraw an offer',
        description: 'Instances on it stay.',
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
        summary: 'Change the terms of an offer for who rents from now on',
        params: idOf('offer'),
        body: TermsBody,
        response: { 200: OperatedOffer },
      },
    },
    (request) => {
      const { release_stopped_after_hours: hours, ...prices } = request.body;
      return offerView(repriceOffer(platform, accountOf(request), request.params.id, { ...prices, ...heldMs(hours) }));
    },
  );
};
