import { Type } from 'typebox';
import { catalogStatus, getOffer, listOffers, type OfferDetails } from '../../services/catalogue/offers.js';
import { MEMBER } from '../policy.js';
import { Micro, Timestamp, Uuid, iso, isoOrNull, nullable } from '../schemas.js';
import { IdParams, PageQuery, page, pageFields, viewPage, type Routes } from './routes.js';

const Machine = Type.Object(
  {
    id: Uuid,
    name: Type.String(),
    region: Type.String(),
    cpu_model: Type.String(),
    cpu_cores: Type.Integer(),
    memory_mb: Type.Integer(),
    disk_gb: Type.Integer(),
    disk_available_gb: Type.Integer(),
    cuda_version: nullable(Type.String()),
    driver_version: nullable(Type.String()),
    vm_capable: Type.Boolean(),
    gpu_release_supported: Type.Boolean(),
    next_maintenance: nullable(Timestamp),
    connected: Type.Boolean(),
  },
  { title: 'Machine' },
);

export const Offer = Type.Object(
  {
    id: Uuid,
    state: Type.Enum(['available', 'unavailable', 'withdrawn']),
    gpu_model: nullable(Type.String()),
    num_gpus: Type.Integer(),
    gpu_memory_mb: nullable(Type.Integer()),
    price_per_hour_micro: Micro,
    storage_price_per_gb_hour_micro: Micro,
    release_stopped_after_hours: nullable(Type.Integer()),
    machine: Machine,
  },
  { title: 'Offer' },
);

const OfferQuery = Type.Partial(
  Type.Object({
    ...pageFields,
    gpu_model: Type.String(),
    num_gpus: Type.Integer({ minimum: 1 }),
    max_price_per_hour_micro: Type.Integer({ minimum: 0 }),
    region: Type.String(),
    vm_capable: Type.Boolean(),
    sort: Type.Enum(['price_asc', 'price_desc', 'newest']),
  }),
);

const ModelStatus = Type.Object(
  {
    gpu_model: Type.String(),
    machines_connected: Type.Integer(),
    gpus_total: Type.Integer(),
    gpus_free: Type.Integer(),
    lowest_price_per_hour_micro: nullable(Micro),
  },
  { title: 'GpuModelStatus' },
);

export const offerRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/offers',
    {
      config: { policy: MEMBER },
      schema: { summary: 'What can be rented now', querystring: OfferQuery, response: { 200: page(Offer) } },
    },
    (request) => viewPage(listOffers(platform, request.query), offerView),
  );

  app.get(
    '/v1/offers/:id',
    {
      config: { policy: MEMBER, refusals: ['OFFER_NOT_FOUND'] },
      schema: { summary: 'One offer, in whatever state', params: IdParams, response: { 200: Offer } },
    },
    (request) => offerView(getOffer(platform, request.params.id)),
  );

  app.get(
    '/v1/catalog/status',
    {
      config: { policy: MEMBER },
      schema: {
        summary: 'Per GPU model: what is connected, what is free, and from what price',
        querystring: PageQuery,
        response: { 200: Type.Object({ ...page(ModelStatus).properties, updated_at: Timestamp }) },
      },
    },
    (request) => {
      const { updatedAt, ...models } = catalogStatus(platform, request.query);
      return { ...models, updated_at: iso(updatedAt) };
    },
  );
};

const HOUR_MS = 3_600_000;

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
