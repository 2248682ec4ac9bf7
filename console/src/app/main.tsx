import { CSPProvider } from '@base-ui/react/csp-provider';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import '../styles/tokens.css';
import '../styles/reset.css';
import { followLive } from '../data/live/live.js';
import { me } from '../data/api/queries.js';
import { makeQueryClient } from '../data/api/query-client.js';
import { whenSomebodyElse } from '../data/api/reader.js';
import { Toasts } from '../parts/controls/toast.js';
import { hideWhenLeft } from './leaving.js';
import { reloadForNewRelease } from './new-release.js';
import { router } from './router.js';

const queries = makeQueryClient();

hideWhenLeft();
reloadForNewRelease();
whenSomebodyElse(() => void queries.invalidateQueries(me));
void followLive(queries, new AbortController().signal);

const root = document.getElementById('root');
if (root)
  createRoot(root).render(
    <StrictMode>
      {/* The policy of the page allows no style elements; the few rules that they would have are in styles/reset.css. */}
      <CSPProvider disableStyleElements>
        <QueryClientProvider client={queries}>
          <RouterProvider router={router} context={{ queries }} />
          <Toasts />
        </QueryClientProvider>
      </CSPProvider>
    </StrictMode>,
  );
