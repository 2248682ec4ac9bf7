import { HOUR_MS } from '../../../shared/time.js';
import { Type, type TSchema } from 'typebox';
import type { OfferDetails } from '../../services/catalogue/offer-details.js';
import { MOST_VALUES, SORTS } from '../../services/catalogue/market-list.js';
import { catalogStatus, countOffers, getOffer, listOffers } from '../../services/catalogue/offers.js';
import { callerOf, READ } from '../access/policy.js';
import {
  choice,
  flag,
  integer,
  iso,
  isoOrNull,
  list,
  meaning,
  micro,
  nullable,
  optional,
  text,
  timestamp,
  uuid,
} from '../schema/schemas.js';
import { pageText, sendBody, textOf } from '../answers/remembered-bodies.js';
import { idOf, listOrPage, pageFields, PageQuery, type Routes } from './routes.js';

/** The fields of a machine that both renters and operators see. */
export const machineFacts = {
  id: uuid('The id of the machine'),
  name: text('The name that its host owner gave it'),
  region: text('The region that its host owner gave'),
  cpu_model: text('The model of its processor'),
  cpu_cores: integer('The number of all its processor cores'),
  memory_mb: integer('All its memory in MiB'),
  disk_gb: integer('The size of its disk in GB'),
  disk_available_gb: integer('The part of its disk that is not committed to instances, in GB'),
  driver_version: nullable(text('The version of its GPU driver; null: it has none')),
  cuda_version: nullable(text('The newest CUDA version that its GPU driver supports; null: it has none')),
  connected: flag('Whether its agent is connected to the control plane'),
};

const Machine = Type.Object(
  {
    ...machineFacts,
    vm_capable: flag('Whether the machine can run templates of the kind `vm`'),
    gpu_release_supported: flag('Whether the machine can release the GPUs of a stopped instance'),
    next_maintenance: nullable(
      timestamp('When the present or next maintenance window starts; null: none is scheduled'),
    ),
  },
  { title: 'Machine' },
);

export const Offer = Type.Object(
  {
    id: uuid('The id of the offer'),
    state: choice(
      ['available', 'unavailable', 'withdrawn'],
      '`available`: can be rented now; `unavailable`: cannot be rented at present; `withdrawn`: cannot be rented any more',
    ),
    gpu_model: nullable(text('The model of its GPUs; null: the machine reports none')),
    num_gpus: integer('The number of GPUs that are rented together'),
    gpu_memory_mb: nullable(integer('The memory of each GPU in MiB; null: the machine reports none')),
    cpu_cores: Type.Number({
      description: 'The processor cores that an instance gets: its part of those of the machine, in thousandths',
    }),
    memory_mb: integer('The memory that an instance gets, in MiB: its part of that of the machine'),
    price_per_hour_micro: micro('The price of one hour of GPU time, for all GPUs of the offer'),
    storage_price_per_gb_hour_micro: micro('The price of one GB of disk for one hour while an instance is stopped'),
    release_stopped_after_hours: nullable(
      integer('After how many hours the GPUs of a stopped instance are released; null: never'),
    ),
    machine: meaning(Machine, 'The machine that has the GPUs'),
  },
  { title: 'Offer' },
);

const filterFields = optional({
  gpu_model: text('Only offers with this GPU model'),
  num_gpus: integer('Only offers with this number of GPUs', { minimum: 1 }),
  max_price_per_hour_micro: micro('Only offers with at most this price per hour', { minimum: 0 }),
  region: text('Only offers in this region'),
  vm_capable: flag('True: only offers on machines that can run virtual machines; false: only offers on the others'),
});

const OfferQuery = Type.Object({
  ...pageFields,
  ...filterFields,
  ...optional({
    sort: choice(
      SORTS,
      'The order; `price_asc` if omitted. `memory_desc` is by the memory of all GPUs of the offer, `gpus_desc` by their number; equal ones by price',
    ),
    template_id: uuid('The template that is to run: offers whose machines can run it come before all others'),
  }),
});

const CountQuery = Type.Object({
  ...filterFields,
  ...optional({ template_id: uuid('The template that is to run, for `fitting`') }),
});

const OfferCounts = Type.Object(
  {
    offers: integer('The number of offers'),
    fitting: nullable(integer('How many of them have a machine that can run the template; null: none was named')),
    gpu_models: countsBy(text('The GPU model'), 'gpu_model'),
    num_gpus: countsBy(integer('The number of GPUs of an offer'), 'num_gpus'),
    regions: countsBy(text('The region'), 'region'),
  },
  { title: 'OfferCounts' },
);

/** Describes how many offers have each value of a filter. */
function countsBy<T extends TSchema>(value: T, filter: string) {
  return list(
    Type.Object({ value, offers: integer('The number of offers that have it') }),
    `The ${MOST_VALUES} most common values among the offers that the filters other than \`${filter}\` leave, the most common first`,
    { maxItems: MOST_VALUES },
  );
}

const ModelStatus = Type.Object(
  {
    gpu_model: text('The GPU model'),
    machines_connected: integer('The number of connected machines that have this model'),
    gpus_total: integer('The number of GPUs of this model in those machines'),
    gpus_free: integer('The number of these GPUs that are free'),
    lowest_price_per_hour_micro: nullable(
      micro('The lowest price per hour for which it can be rented now; null: it cannot be rented now'),
    ),
  },
  { title: 'GpuModelStatus' },
);

const offerText = textOf(Offer, offerView);

export const offerRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/offers',
    {
      config: { policy: READ, hasETag: true, refusals: ['TEMPLATE_NOT_FOUND'] },
      schema: {
        operationId: 'listOffers',
        summary: 'List the offers that can be rented now',
        querystring: OfferQuery,
        response: { 200: listOrPage(Offer) },
      },
    },
    (request, reply) => {
      const page = listOffers(platform, callerOf(request), request.query);
      return sendBody(request.headers, reply, page, () => pageText(page, offerText));
    },
  );

  app.get(
    '/v1/offers/counts',
    {
      config: { policy: READ, refusals: ['TEMPLATE_NOT_FOUND'] },
      schema: {
        operationId: 'getOfferCounts',
        summary: 'Get how many offers can be rented now, by GPU model, number of GPUs and region',
        querystring: CountQuery,
        response: { 200: OfferCounts },
      },
    },
    (request) => countOffers(platform, callerOf(request), request.query),
  );

  app.get(
    '/v1/offers/:id',
    {
      config: { policy: READ, refusals: ['OFFER_NOT_FOUND'] },
      schema: {
        operationId: 'getOffer',
        summary: 'Get an offer in any state',
        params: idOf('offer'),
        response: { 200: Offer },
      },
    },
    (request) => offerView(getOffer(platform, request.params.id)),
  );

  app.get(
    '/v1/catalog/status',
    {
      config: { policy: READ },
      schema: {
        operationId: 'getCatalogStatus',
        summary: 'Get the connected GPUs, free GPUs and lowest price of each GPU model',
        querystring: PageQuery,
        response: {
          200: Type.Object({
            ...listOrPage(ModelStatus).properties,
            updated_at: timestamp('When these numbers were read'),
          }),
        },
      },
    },
    (request) => {
      const { updatedAt, ...models } = catalogStatus(platform, request.query);
      return { ...models, updated_at: iso(updatedAt) };
    },
  );
};

/** Converts `release_stopped_after_hours` of a request body into the column of an offer, in ms; an omitted field stays omitted. */
export function heldMs(hours: number | null | undefined): { release_stopped_after_ms?: number | null } {
  if (hours === undefined) return {};
  return { release_stopped_after_ms: hours === null ? null : hours * HOUR_MS };
}

export function hoursOf(ms: number | null): number | null {
  return ms === null ? null : ms / HOUR_MS;
}

export function offerView({ machine, slice, release_stopped_after_ms, ...offer }: OfferDetails) {
  return {
    ...offer,
    cpu_cores: slice.cpuMillis / 1_000,
    memory_mb: slice.memoryMb,
    release_stopped_after_hours: hoursOf(release_stopped_after_ms),
    machine: {
      ...machine,
      vm_capable: machine.vm_capable === 1,
      gpu_release_supported: machine.gpu_release_supported === 1,
      next_maintenance: isoOrNull(machine.next_maintenance),
    },
  };
}
