import { Type } from 'typebox';
import { VERSION } from '../../../shared/version.js';
import { Refusal } from '../../domain/refusal.js';
import { Readiness } from '../../services/system/readiness.js';
import { PUBLIC } from '../access/policy.js';
import { choice, text } from '../schema/schemas.js';
import type { Routes } from './routes.js';

const status = choice(['ok'], 'The check has passed');
const version = Type.Optional(text('The version of the control plane, such as 0.3.0'));

export const healthRoutes: Routes = (app, platform) => {
  const readiness = new Readiness(platform);

  app.get(
    '/healthz',
    {
      config: { policy: PUBLIC, readsNothing: true },
      schema: {
        operationId: 'getHealth',
        summary: 'Check that the process answers',
        response: { 200: Type.Object({ status, version }) },
      },
    },
    () => ({ status: 'ok' as const, version: VERSION }),
  );

  app.get(
    '/readyz',
    {
      config: { policy: PUBLIC, refusals: ['UNAVAILABLE'] },
      schema: {
        operationId: 'getReadiness',
        summary: 'Check that the process can write its database',
        response: { 200: Type.Object({ status }) },
      },
    },
    (request) => {
      const fault = readiness.look();
      if (fault === undefined) return { status: 'ok' as const };
      // Anybody can call this route; only the operator can read the log, so the details go there.
      request.log.error(`the database cannot be written: ${fault}`);
      throw new Refusal('UNAVAILABLE', 'the database cannot be written; see the log of the control plane');
    },
  );
};
