import { Type } from 'typebox';
import { PUBLIC } from '../policy.js';
import type { Routes } from './routes.js';

const Health = Type.Object({ status: Type.Literal('ok') });

export const healthRoutes: Routes = (app) => {
  const options = { config: { policy: PUBLIC }, schema: { response: { 200: Health } } } as const;
  app.get('/healthz', options, () => ({ status: 'ok' as const }));
  app.get('/readyz', options, () => ({ status: 'ok' as const }));
};
