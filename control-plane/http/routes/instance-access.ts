import { Type } from 'typebox';
import { replaceAccess } from '../../services/instances/access.js';
import { MEMBER, callerOf } from '../policy.js';
import { body, nullable } from '../schemas.js';
import { Instance, instanceView } from './instances.js';
import { IdParams, type Routes } from './routes.js';

const AccessBody = body({ ssh_key_id: Type.Optional(nullable(Type.String())) });

/** Who gets into an instance. */
export const instanceAccessRoutes: Routes = (app, platform) => {
  app.post(
    '/v1/instances/:id/access',
    {
      config: {
        policy: MEMBER,
        refusals: ['INSTANCE_NOT_FOUND', 'INVALID_STATE', 'ACCESS_UNSUPPORTED', 'SSH_KEY_NOT_FOUND'],
      },
      schema: {
        summary: 'Replace the access token, and the SSH key by the one named; without one it stays',
        params: IdParams,
        body: AccessBody,
        response: { 202: Instance },
      },
      // Without a body there is no key to replace.
      preValidation: async (request) => {
        const sent: unknown = request.body;
        if (sent === undefined) request.body = {};
      },
    },
    (request, reply) => {
      const { ssh_key_id = null } = request.body;
      void reply.code(202);
      return instanceView(replaceAccess(platform, callerOf(request), request.params.id, { ssh_key_id }));
    },
  );
};
