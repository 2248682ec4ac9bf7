import { Type } from 'typebox';
import { createApiKey, listApiKeys, revokeApiKey, type ApiKeyDetails } from '../../services/accounts/api-keys.js';
import { CREDENTIALS, MEMBER, callerOf, sessionOf } from '../policy.js';
import { Timestamp, Uuid, body, iso, isoOrNull, nullable, nameOf } from '../schemas.js';
import { IdParams, NoContent, PageQuery, page, viewPage, type Routes } from './routes.js';

const Kind = Type.Union([Type.Literal('personal'), Type.Literal('team')]);
const ApiKey = Type.Object(
  {
    id: Uuid,
    name: Type.String(),
    kind: Kind,
    prefix: Type.String(),
    creator_email: Type.String(),
    creator_id: Uuid,
    created_at: Timestamp,
    last_used_at: nullable(Timestamp),
    creator_is_member: Type.Boolean(),
  },
  { title: 'ApiKey' },
);

export const apiKeyRoutes: Routes = (app, platform) => {
  app.post(
    '/v1/api-keys',
    {
      config: { policy: CREDENTIALS, refusals: ['LIMIT_REACHED'] },
      schema: {
        summary: 'Mint an API key; its secret is shown this once',
        body: body({
          name: nameOf(64),
          kind: Type.Enum(['personal', 'team'], { default: 'personal' }),
        }),
        response: { 201: Type.Object({ key: ApiKey, secret: Type.String() }) },
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
        summary: "The organization's active API keys, newest first",
        querystring: PageQuery,
        response: { 200: page(ApiKey) },
      },
    },
    (request) => viewPage(listApiKeys(platform, callerOf(request), request.query), apiKeyView),
  );

  app.delete(
    '/v1/api-keys/:id',
    {
      config: { policy: CREDENTIALS, refusals: ['API_KEY_NOT_FOUND', 'ADMIN_REQUIRED'] },
      schema: { summary: 'Revoke an API key', params: IdParams, response: { 204: NoContent } },
    },
    (request, reply) => {
      revokeApiKey(platform, sessionOf(request), request.params.id);
      void reply.code(204);
      return null;
    },
  );
};

function apiKeyView(key: ApiKeyDetails) {
  return { ...key, created_at: iso(key.created_at), last_used_at: isoOrNull(key.last_used_at) };
}
