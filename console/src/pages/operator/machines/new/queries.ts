import { queryOptions } from '@tanstack/react-query';
import { api } from '../../../../data/api/api.js';
import type { Machine, MachineFindings, OperatedOffer } from '../../models.js';
import { LOOK_AGAIN_MS } from '../../queries.js';
import { readFindings } from '../queries.js';

const LOOK_MS = 2_000;
/** Each machine costs two requests: so many can be looked at so often. */
const FEW = 3;
/** Of a token that lets more hosts in, the newest are followed here; all are on the page of machines. */
export const MOST_SHOWN = 10;

export interface Arrival {
  machine: Machine;
  /** What the doctor finds on its host. */
  doctor: MachineFindings;
  /** Those that are not withdrawn. */
  offers: OperatedOffer[];
}

/** The machines that have enrolled since a time, newest first, each with its offers and what the doctor finds. */
export const arrivals = (since: string) =>
  queryOptions({
    queryKey: ['operator', 'arrivals', since],
    queryFn: async ({ signal }): Promise<Arrival[]> => {
      const limit = MOST_SHOWN;
      const { items } = await api.get('/v1/operator/machines', { params: { query: { limit } }, signal });
      const arrived = items.filter(({ enrolled_at }) => enrolled_at >= since);
      return Promise.all(
        arrived.map(async (machine) => {
          const query = { machine_id: machine.id, withdrawn: false, limit };
          const [offers, doctor] = await Promise.all([
            api.get('/v1/operator/offers', { params: { query }, signal }),
            readFindings(machine.id, signal),
          ]);
          return { machine, doctor, offers: offers.items };
        }),
      );
    },
    refetchInterval: ({ state: { data = [] } }) =>
      data.length > FEW || (data.length > 0 && data.every(isOnMarket)) ? LOOK_AGAIN_MS : LOOK_MS,
  });

const isOnMarket = ({ offers }: Arrival) => offers.some(({ state }) => state === 'available');
