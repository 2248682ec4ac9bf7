import { Type } from 'typebox';
import { API_KEY_KINDS } from '../../domain/caller.js';
import { createApiKey, listApiKeys, revokeApiKey, type ApiKeyDetails } from '../../services/accounts/api-keys.js';
import { CREDENTIALS, MEMBER, callerOf, sessionOf } from '../policy.js';
import { body, choice, flag, iso, isoOrNull, meaning, nameOf, nullable, text, timestamp, uuid } from '../schemas.js';
import { idOf, NoContent, listOrPage, PageQuery, type Routes } from './routes.js';
import { answerList } from './whole-list.js';

const KIND =
  '`personal`: belongs to its creator and is revoked when the creator leaves; `team`: belongs to the organization';
export function kindOf(options = {}) {
  return choice(API_KEY_KINDS, KIND, options);
}
export const ApiKey = Type.Object(
  {
    id: uuid('The id of the key'),
    name: text('The name of the key'),
    kind: kindOf(),
    prefix: text('The first 12 characters of the secret'),
    creator_email: text('The e-mail address of its creator'),
    creator_id: uuid('The id of its creator'),
    created_at: timestamp('When the key was created'),
    last_used_at: nullable(timestamp('When the key was last used; null: never')),
    creator_is_member: flag('False once its creator has left the organization'),
  },
  { title: 'ApiKey' },
);

export const apiKeyRoutes: Routes = (app, platform) => {
  app.post(
    '/v1/api-keys',
    {
      config: { policy: CREDENTIALS, refusals: ['LIMIT_REACHED'] },
      schema: {
        operationId: 'createApiKey',
        summary: 'Create an API key',
        description: 'Only this response contains the secret. Only an admin can create a key of the kind `team`.',
        body: body({
          name: nameOf('The name of the key', 64),
          kind: kindOf({ default: 'personal' }),
        }),
        response: {
          201: Type.Object({
            key: meaning(ApiKey, 'The key, as the list shows it'),
            secret: text('`svc_` and 48 hexadecimal characters: send it as `Authorization: Bearer`'),
          }),
        },
      },
    },
    (request, reply) => {
      const { key, secret } = createApiKey(platform, sessionOf(request), request.body);
      void reply.code(201);
      return { key: apiKeyView(key), secret };
    },
  );

  app.get(
    '/v1/api-keys',
    {
      config: { policy: MEMBER },
      schema: {
        operationId: 'listApiKeys',
        summary: "List the organization's active API keys, newest first",
        querystring: PageQuery,
        response: { 200: listOrPage(ApiKey) },
      },
    },
    (request, reply) =>
      answerList(reply, request.query, (query) => listApiKeys(platform, callerOf(request), query), apiKeyView),
  );

  app.delete(
    '/v1/api-keys/:id',
    {
      config: { policy: CREDENTIALS, refusals: ['API_KEY_NOT_FOUND', 'ADMIN_REQUIRED'] },
      schema: {
        operationId: 'revokeApiKey',
        summary: 'Revoke an API key',
        description:
          'The key stops working at its next request; instances that it has deployed stay. A member who is not an admin can revoke only their own personal keys.',
        params: idOf('API key'),
        response: { 204: NoContent },
      },
    },
    (request, reply) => {
      revokeApiKey(platform, sessionOf(request), request.params.id);
      void reply.code(204);
      return null;
    },
  );
};

export function apiKeyView(key: ApiKeyDetails) {
  return { ...key, created_at: iso(key.created_at), last_used_at: isoOrNull(key.last_used_at) };
}
