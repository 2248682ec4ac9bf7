import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { api } from '../../data/api/api.js';
import { serverNow } from '../../data/api/clock.js';
import type { DeployRequest, Estimate } from '../../data/api/models.js';

/** Nobody asks for a price between two keys. */
const PAUSE_MS = 250;
/** Other organizations rent, operators change prices, and no event tells. */
const AGAIN_MS = 20_000;

/** What an hour costs, in micro-dollars; null: there is no such offer. */
export type Price = Pick<Estimate, 'gpu_per_hour_micro' | 'disk_per_hour_micro'>;

/**
 * Asks what a deploy costs and meets: once nobody has changed it for a moment, again when events concern it, and every 20 seconds while
 * the page is seen. `isCurrent`: the answer is about this request. `since`: when it was so.
 */
export function useEstimate(request: DeployRequest | undefined) {
  const text = request && JSON.stringify(request);
  const asked = useSettled(text);
  const { data, error, isSuccess, isPlaceholderData, refetch } = useQuery({
    queryKey: ['organization', 'estimate', asked],
    queryFn: async ({ signal }) => {
      const body = JSON.parse(asked ?? '') as DeployRequest;
      const estimate = await api.post('/v1/instances/estimate', { body, signal });
      return { estimate, since: new Date(serverNow()).toISOString() };
    },
    enabled: asked !== undefined,
    placeholderData: keepPreviousData,
    refetchInterval: AGAIN_MS,
    staleTime: AGAIN_MS,
    gcTime: 0,
  });
  const isCurrent = asked === text && isSuccess && !isPlaceholderData;
  return { ...data, error, isCurrent, isAsked: asked !== undefined, askAgain: () => void refetch() };
}

/** Returns what a deploy sends so that it costs no more than an estimate has said. */
export function atMostFor({ gpu_per_hour_micro, disk_per_hour_micro }: Price) {
  return { max_gpu_per_hour_micro: gpu_per_hour_micro, max_disk_per_hour_micro: disk_per_hour_micro };
}

/**
 * Returns the price that the reader has been shown first, while it is about the same, and whether it has risen since; `accept` makes the
 * present one that price.
 */
export function useShownPrice(about: string | undefined, now: Price | undefined) {
  const [shown, setShown] = useState<{ about: string; price: Price }>();
  if (about !== undefined && now && shown?.about !== about) setShown({ about, price: now });
  const price = shown?.about === about ? shown?.price : undefined;
  const accept = () => about !== undefined && now && setShown({ about, price: now });
  return { price, hasRisen: price !== undefined && now !== undefined && isAbove(now, price), accept };
}

function isAbove(now: Price, before: Price): boolean {
  return (
    (now.gpu_per_hour_micro ?? 0) > (before.gpu_per_hour_micro ?? Infinity) ||
    (now.disk_per_hour_micro ?? 0) > (before.disk_per_hour_micro ?? Infinity)
  );
}

/** Returns a text as it was once nobody has changed it for a moment. */
function useSettled(text: string | undefined): string | undefined {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
