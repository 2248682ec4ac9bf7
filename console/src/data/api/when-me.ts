import { QueryObserver, type QueryClient } from '@tanstack/react-query';
import type { Me } from './models.js';
import { me } from './queries.js';

/** How often it is read who the reader is, and whether they are signed in still, where no event tells. */
const LOOK_MS = 20_000;

/** Waits until it is known who the reader is, and `isSo` says yes to it; undefined: the signal was aborted. Looks also in a tab that is not seen. */
export function whenMe(queries: QueryClient, isSo: (me: Me) => boolean, signal: AbortSignal): Promise<Me | undefined> {
  const often = { refetchInterval: LOOK_MS, refetchIntervalInBackground: true };
  const observer = new QueryObserver(queries, { ...me, ...often });
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(undefined);
    const end = (found?: Me) => {
      stop();
      signal.removeEventListener('abort', onAbort);
      resolve(found);
    };
    const onAbort = () => end();
    const look = ({ data }: { data: Me | undefined }) => {
      if (data !== undefined && isSo(data)) end(data);
    };
    const stop = observer.subscribe(look);
    signal.addEventListener('abort', onAbort);
    look(observer.getCurrentResult());
  });
}
