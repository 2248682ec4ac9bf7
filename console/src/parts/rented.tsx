import { useQuery } from '@tanstack/react-query';
import type { Instance, Offer } from '../data/models.js';
import { rentedOffer } from '../data/offers.js';
import { nameOfOffer } from './market/offer-row.js';

/** Something of the offer that an instance rents. What stands in its place until it is read keeps its line. */
export function Rented({ instance, words }: { instance: Instance; words: (offer: Offer) => string }) {
  const { data, isError } = useQuery(rentedOffer(instance.offer.id));
  if (data) return <>{words(data)}</>;
  return <>{isError ? 'not known' : '…'}</>;
}

/** Returns what is rented, and where, in a line: `2 × RTX 4090, amber, eu-west`. */
export function rentedWords(offer: Offer): string {
  const { name, region } = offer.machine;
  return [nameOfOffer(offer), name, region].filter((word) => word !== '').join(', ');
}
