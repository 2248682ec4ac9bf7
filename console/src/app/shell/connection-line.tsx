import { useQuery, useQueryClient } from '@tanstack/react-query';
import { READ_AGAIN_MS, useConnection } from '../../data/live/connection.js';
import { me } from '../../data/api/queries.js';
import { Button } from '../../parts/controls/button.js';
import { Notice } from '../../parts/controls/states.js';
import { At } from '../../parts/values/time.js';

/** Says when what is shown can be old: since when the control plane is not heard, or that it sends no events. */
export function ConnectionLine() {
  const { state, since, reason } = useConnection();
  const { data } = useQuery(me);
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
      {/* Without an organization there is nothing of which events could tell. */}
      {state === 'off' && data?.active_organization_id !== null && <NotLive reason={reason} />}
    </div>
  );
}

function NotLive({ reason }: { reason: string | undefined }) {
  const queries = useQueryClient();
  return (
    <Notice kind={reason === undefined ? 'note' : 'warning'}>
      <p>
        {reason === undefined
          ? 'Your role is not told of changes as they happen. '
          : `You are not told of changes as they happen: ${reason}. The console goes on trying. `}
        What you see is read again every {READ_AGAIN_MS / 1_000} seconds.
      </p>
      <p>
        <Button onClick={() => void queries.invalidateQueries()}>Read again now</Button>
      </p>
    </Notice>
  );
}
