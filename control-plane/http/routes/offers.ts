import { HOUR_MS } from '../../../shared/time.js';
import { Type } from 'typebox';
import { catalogStatus, getOffer, listOffers, type OfferDetails } from '../../services/catalogue/offers.js';
import { MEMBER } from '../policy.js';
import {
  choice,
  flag,
  integer,
  iso,
  isoOrNull,
  meaning,
  micro,
  nullable,
  optional,
  text,
  timestamp,
  uuid,
} from '../schemas.js';
import { idOf, page, pageFields, PageQuery, viewPage, type Routes } from './routes.js';

/** What renters and operators alike are told of a machine. */
export const machineFacts = {
  id: uuid('The id of the machine'),
  name: text('What its owner calls it'),
  region: text('Where it is, as its owner says'),
  cpu_model: text('The model of its processor'),
  cpu_cores: integer('How many processor cores it has'),
  memory_mb: integer('Its memory in MB'),
  disk_gb: integer('Its whole disk in GB'),
  disk_available_gb: integer('How much of its disk is not committed to instances, in GB'),
  driver_version: nullable(text('The version of its GPU driver; null where it has none')),
  cuda_version: nullable(text('The newest CUDA that its GPU driver supports; null where it has none')),
  connected: flag('Whether its agent is connected to the control plane'),
};

const Machine = Type.Object(
  {
    ...machineFacts,
    vm_capable: flag('Whether it can run templates of the kind `vm`'),
    gpu_release_supported: flag('Whether it can release the GPUs of a stopped instance'),
    next_maintenance: nullable(
      timestamp('When its present or next maintenance window starts; null: none is announced'),
    ),
  },
  { title: 'Machine' },
);

export const Offer = Type.Object(
  {
    id: uuid('The id of the offer'),
    state: choice(
      ['available', 'unavailable', 'withdrawn'],
      'Whether it can be rented now, not at present, or never again',
    ),
    gpu_model: nullable(text('The model of its GPUs; null where the machine shows none')),
    num_gpus: integer('How many GPUs are rented together'),
    gpu_memory_mb: nullable(integer('The memory of each GPU in MB; null where the machine shows none')),
    price_per_hour_micro: micro('The price of an hour of GPU time, for all of its GPUs'),
    storage_price_per_gb_hour_micro: micro('The price of a GB of disk for an hour while an instance is stopped'),
    release_stopped_after_hours: nullable(
      integer('After how many hours a stopped instance gives its GPUs back to the market; null: never'),
    ),
    machine: meaning(Machine, 'The machine that has the GPUs'),
  },
  { title: 'Offer' },
);

const OfferQuery = Type.Object({
  ...pageFields,
  ...optional({
    gpu_model: text('Only offers of this GPU model'),
    num_gpus: integer('Only offers of so many GPUs', { minimum: 1 }),
    max_price_per_hour_micro: micro('Only offers of at most this price per hour', { minimum: 0 }),
    region: text('Only offers in this region'),
    vm_capable: flag('Only offers on machines that can run virtual machines, or that cannot'),
    sort: choice(['price_asc', 'price_desc', 'newest'], 'The order; `price_asc` where it is left out'),
  }),
});

const ModelStatus = Type.Object(
  {
    gpu_model: text('The GPU model'),
    machines_connected: integer('How many connected machines have it'),
    gpus_total: integer('How many GPUs of it those machines have'),
    gpus_free: integer('How many of these are free'),
    lowest_price_per_hour_micro: nullable(
      micro('The lowest price of an hour for which it can be rented now; null where it cannot'),
    ),
  },
  { title: 'GpuModelStatus' },
);

export const offerRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/offers',
    {
      config: { policy: MEMBER },
      schema: {
        operationId: 'listOffers',
        summary: 'List the offers that can be rented now',
        querystring: OfferQuery,
        response: { 200: page(Offer) },
      },
    },
    (request) => viewPage(listOffers(platform, request.query), offerView),
  );

  app.get(
    '/v1/offers/:id',
    {
      config: { policy: MEMBER, refusals: ['OFFER_NOT_FOUND'] },
      schema: {
        operationId: 'getOffer',
        summary: 'Get an offer, in whatever state',
        params: idOf('offer'),
        response: { 200: Offer },
      },
    },
    (request) => offerView(getOffer(platform, request.params.id)),
  );

  app.get(
    '/v1/catalog/status',
    {
      config: { policy: MEMBER },
      schema: {
        operationId: 'getCatalogStatus',
        summary: 'Get, for each GPU model, how many are connected and free, and from what price',
        querystring: PageQuery,
        response: {
          200: Type.Object({ ...page(ModelStatus).properties, updated_at: timestamp('Of which moment this is') }),
        },
      },
    },
    (request) => {
      const { updatedAt, ...models } = catalogStatus(platform, request.query);
      return { ...models, updated_at: iso(updatedAt) };
    },
  );
};

/** What a body says in hours, as it is kept. */
export function heldMs(hours: number | null | undefined): { release_stopped_after_ms?: number | null } {
  if (hours === undefined) return {};
  return { release_stopped_after_ms: hours === null ? null : hours * HOUR_MS };
}

export function hoursOf(ms: number | null): number | null {
  return ms === null ? null : ms / HOUR_MS;
}

export function offerView({ machine, release_stopped_after_ms, ...offer }: OfferDetails) {
  return {
    ...offer,
    release_stopped_after_hours: hoursOf(release_stopped_after_ms),
    machine: {
      ...machine,
      vm_capable: machine.vm_capable === 1,
      gpu_release_supported: machine.gpu_release_supported === 1,
      next_maintenance: isoOrNull(machine.next_maintenance),
    },
  };
}
