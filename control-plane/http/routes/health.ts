import { Type } from 'typebox';
import { PUBLIC } from '../policy.js';
import type { Routes } from './routes.js';

const Health = Type.Object({ status: Type.Literal('ok') });

export const healthRoutes: Routes = (app) => {
  const options = (summary: string) =>
    ({ config: { policy: PUBLIC }, schema: { summary, response: { 200: Health } } }) as const;
  app.get('/healthz', options('The process answers'), () => ({ status: 'ok' as const }));
  app.get('/readyz', options('The process can serve'), () => ({ status: 'ok' as const }));
};
