import { useConnection } from '../../data/connection.js';
import { Notice } from '../../parts/states.js';
import { At } from '../../parts/time.js';

/** Says when what is shown can be old: since when no events arrive. */
export function ConnectionLine() {
  const { state, since } = useConnection();
  return (
    <div role="status" aria-label="Connection" data-connection={state}>
      {state === 'cut' && (
        <Notice kind="warning">
          <p>
            {navigator.onLine ? 'The control plane has not been heard since' : 'Your browser is offline since'}{' '}
            <At at={new Date(since).toISOString()} />. What you see is as it was then; the console goes on trying.
          </p>
        </Notice>
      )}
    </div>
  );
}
