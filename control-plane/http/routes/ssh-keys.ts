import { Type } from 'typebox';
import { addSshKey, listSshKeys, removeSshKey, type SshKeyDetails } from '../../services/organizations/ssh-keys.js';
import { ACCOUNT, accountOf } from '../access/policy.js';
import { body, iso, nameOf, text, timestamp, uuid } from '../schema/schemas.js';
import { idOf, NoContent, listOrPage, PageQuery, type Routes } from './routes.js';
import { answerList } from './whole-list.js';

const SshKey = Type.Object(
  {
    id: uuid('The id of the key'),
    name: text('The name of the key'),
    fingerprint: text('Its fingerprint, as `SHA256:...`'),
    public_key: text('The public key in the format of OpenSSH'),
    created_at: timestamp('When the key was added'),
  },
  { title: 'SshKey' },
);

export const sshKeyRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/ssh-keys',
    {
      config: { policy: ACCOUNT },
      schema: {
        operationId: 'listSshKeys',
        summary: "List the user's SSH keys",
        querystring: PageQuery,
        response: { 200: listOrPage(SshKey) },
      },
    },
    (request, reply) =>
      answerList(reply, request.query, (query) => listSshKeys(platform, accountOf(request), query), sshKeyView),
  );

  app.post(
    '/v1/ssh-keys',
    {
      config: { policy: ACCOUNT, refusals: ['SSH_KEY_EXISTS', 'LIMIT_REACHED'] },
      schema: {
        operationId: 'addSshKey',
        summary: 'Add a public SSH key',
        description: 'Accepts ed25519, ECDSA, security keys, and RSA of at least 2048 bits.',
        body: body({
          name: nameOf('The name of the key', 64),
          public_key: text('The public key in the format of OpenSSH', { minLength: 1, maxLength: 16384 }),
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
        operationId: 'removeSshKey',
        summary: 'Remove an SSH key',
        description: 'Instances that already have the key keep it.',
        params: idOf('SSH key'),
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
