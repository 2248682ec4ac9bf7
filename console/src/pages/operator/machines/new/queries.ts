import { queryOptions } from '@tanstack/react-query';
import { api } from '../../../../data/api.js';
import type { Machine, OperatedOffer } from '../../models.js';
import { LOOK_AGAIN_MS } from '../../queries.js';

const LOOK_MS = 2_000;
/** A token lets one host in: more are shown only where several operators add machines at a time. */
const MOST_SHOWN = 10;
const OFFERS = 100;

interface Arrival {
  machine: Machine;
  /** Those that are not withdrawn. */
  offers: OperatedOffer[];
}

/** The machines that have enrolled since a time, newest first, each with its offers. */
export const arrivals = (since: string) =>
  queryOptions({
    queryKey: ['operator', 'arrivals', since],
    queryFn: async ({ signal }): Promise<Arrival[]> => {
      const newest = (limit: number) => ({ params: { query: { limit } }, signal });
      const { items } = await api.get('/v1/operator/machines', newest(MOST_SHOWN));
      const arrived = items.filter(({ enrolled_at }) => enrolled_at >= since);
      if (arrived.length === 0) return [];
      // An offer of a new machine is among the newest.
      const offers = (await api.get('/v1/operator/offers', newest(OFFERS))).items.filter(isOpen);
      return arrived.map((machine) => ({
        machine,
        offers: offers.filter(({ machine: { id } }) => id === machine.id),
      }));
    },
    refetchInterval: ({ state: { data } }) => (data?.length && data.every(isOnMarket) ? LOOK_AGAIN_MS : LOOK_MS),
  });

const isOpen = ({ state }: OperatedOffer) => state !== 'withdrawn';
const isOnMarket = ({ offers }: Arrival) => offers.some(({ state }) => state === 'available');
