import { Type } from 'typebox';
import { addSshKey, listSshKeys, removeSshKey, type SshKeyDetails } from '../../services/accounts/ssh-keys.js';
import { ACCOUNT, accountOf } from '../policy.js';
import { Timestamp, Uuid, body, iso, nameOf } from '../schemas.js';
import { IdParams, NoContent, PageQuery, page, viewPage, type Routes } from './routes.js';

const SshKey = Type.Object(
  {
    id: Uuid,
    name: Type.String(),
    fingerprint: Type.String(),
    public_key: Type.String(),
    created_at: Timestamp,
  },
  { title: 'SshKey' },
);

export const sshKeyRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/ssh-keys',
    {
      config: { policy: ACCOUNT },
      schema: { summary: "The user's SSH keys", querystring: PageQuery, response: { 200: page(SshKey) } },
    },
    (request) => viewPage(listSshKeys(platform, accountOf(request), request.query), sshKeyView),
  );

  app.post(
    '/v1/ssh-keys',
    {
      config: { policy: ACCOUNT, refusals: ['SSH_KEY_EXISTS', 'LIMIT_REACHED'] },
      schema: {
        summary: 'Add a public SSH key',
        body: body({
          name: nameOf(64),
          public_key: Type.String({ minLength: 1, maxLength: 16384 }),
        }),
        response: { 201: SshKey },
      },
    },
    (request, reply) => {
      void reply.code(201);
      return sshKeyView(addSshKey(platform, accountOf(request), request.body));
    },
  );

  app.delete(
    '/v1/ssh-keys/:id',
    {
      config: { policy: ACCOUNT, refusals: ['SSH_KEY_NOT_FOUND'] },
      schema: {
        summary: 'Remove an SSH key; instances that have it keep it',
        params: IdParams,
        response: { 204: NoContent },
      },
    },
    (request, reply) => {
      removeSshKey(platform, accountOf(request), request.params.id);
      void reply.code(204);
      return null;
    },
  );
};

function sshKeyView(key: SshKeyDetails) {
  return { ...key, created_at: iso(key.created_at) };
}
