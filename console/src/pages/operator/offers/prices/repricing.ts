import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { api } from '../../../../data/api/api.js';
import { say } from '../../../../parts/controls/toast.js';
import type { OperatedOffer } from '../../models.js';
import type { NewPrices } from './new-prices.js';

/** How the change of an offer went: `error` says why it failed. */
export interface Outcome {
  offer: OperatedOffer;
  error?: Error;
}

/**
 * The chosen offers and the change of their prices, one after the other. One that fails stays chosen, so that the same button tries it
 * again; one that has its new price is chosen no more. Once nobody can see how it goes, no further offer is changed.
 */
export function useRepricing() {
  const queries = useQueryClient();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [outcomes, setOutcomes] = useState<ReadonlyMap<string, Outcome>>(new Map());
  const [isBusy, setBusy] = useState(false);
  const isShown = useRef(true);
  useEffect(() => {
    isShown.current = true;
    return () => {
      isShown.current = false;
    };
  }, []);

  const choose = (ids: readonly string[], isChosen: boolean) =>
    setChosen((before) => new Set(isChosen ? [...before, ...ids] : [...before].filter((id) => !ids.includes(id))));
  const note = (outcome: Outcome) => setOutcomes((before) => new Map(before).set(outcome.offer.id, outcome));

  const reprice = async (changes: readonly { offer: OperatedOffer; prices: NewPrices }[]) => {
    setBusy(true);
    setOutcomes(new Map());
    let done = 0;
    for (const { offer, prices } of changes) {
      if (!isShown.current) {
        say(`Stopped with the page: ${done} of ${changes.length} offers have the new price.`);
        break;
      }
      const { id } = offer;
      try {
        await api.patch('/v1/operator/offers/{id}', { params: { path: { id } }, body: prices });
        note({ offer });
        done += 1;
        choose([id], false);
      } catch (error) {
        note({ offer, error: error instanceof Error ? error : new Error(String(error)) });
      }
    }
    await Promise.all([['operator', 'offers'], ['offers']].map((queryKey) => queries.invalidateQueries({ queryKey })));
    setBusy(false);
  };
  return { chosen, outcomes, isBusy, choose, reprice };
}
