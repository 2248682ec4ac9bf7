import { queryOptions } from '@tanstack/react-query';
import { api } from '../../data/api/api.js';
import { LOOK_AGAIN_MS } from './queries.js';

/** Where nothing is rented, there are few organizations. */
const MOST = 100;

/** What an installation has on the way to its first rented instance; null: something is rented. */
export const firstSteps = queryOptions({
  queryKey: ['operator', 'first-steps'],
  queryFn: async ({ signal }) => {
    const newest = (limit: number) => ({ params: { query: { limit } }, signal });
    if ((await api.get('/v1/operator/instances', newest(1))).items.length > 0) return null;
    const template = (tab: 'system' | 'public') =>
      api.get('/v1/templates', { params: { query: { tab, limit: 1 } }, signal });
    const [machines, offers, system, published, organizations, settings] = await Promise.all([
      api.get('/v1/operator/machines', newest(1)),
      api.get('/v1/operator/offers', { params: { query: { withdrawn: false, limit: 1 } }, signal }),
      template('system'),
      template('public'),
      api.get('/v1/operator/organizations', newest(MOST)),
      api.get('/v1/operator/settings', { signal }),
    ]);
    const signUp = settings.items.find(({ name }) => name === 'GPURENT_SIGN_UP')?.value;
    return {
      signsUpByInvitation: signUp === 'invitation',
      hasMachine: machines.items.length > 0,
      hasOffer: offers.items.length > 0,
      hasTemplate: system.items.length + published.items.length > 0,
      hasCredit: organizations.items.some(({ balance_micro }) => balance_micro > 0),
    };
  },
  // Most steps are done on other pages.
  staleTime: 0,
  refetchInterval: LOOK_AGAIN_MS,
});
