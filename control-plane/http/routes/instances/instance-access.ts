import { MEMBER, callerOf } from '../../access/policy.js';
import { body, nullable, optional, text } from '../../schema/schemas.js';
import { Instance, instanceView } from './instance-view.js';
import { idOf, type Routes } from '../routes.js';
import { replaceAccess } from '../../../services/actions/replace-access.js';

const AccessBody = body(
  optional({
    ssh_key_id: nullable(text('The SSH key that replaces the present one; omitted or null: the present one stays')),
  }),
);

/** Replaces the credentials of an instance. */
export const instanceAccessRoutes: Routes = (app, platform) => {
  app.post(
    '/v1/instances/:id/access',
    {
      config: {
        policy: MEMBER,
        refusals: ['INSTANCE_NOT_FOUND', 'INVALID_STATE', 'ACCESS_UNSUPPORTED', 'SSH_KEY_NOT_FOUND'],
      },
      schema: {
        operationId: 'replaceInstanceAccess',
        summary: 'Replace the access token of an instance and, with `ssh_key_id`, its SSH key',
        description:
          'The instance must be `running` or `stopped`. Its `access_replacement` tells whether the host has done it.',
        params: idOf('instance'),
        body: AccessBody,
        response: { 202: Instance },
      },
    },
    (request, reply) => {
      const { ssh_key_id = null } = request.body;
      void reply.code(202);
      return instanceView(replaceAccess(platform, callerOf(request), request.params.id, { ssh_key_id }));
    },
  );
};
