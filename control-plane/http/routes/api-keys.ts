import { Type } from 'typebox';
import { API_KEY_KINDS } from '../../domain/caller.js';
import { MOST_ALLOWED_ADDRESSES } from '../../services/organizations/keys/allowed-addresses.js';
import { listApiKeys, revokeApiKey, type ApiKeyDetails } from '../../services/organizations/keys/api-keys.js';
import { createCappedKey } from '../../services/billing/caps/capped-keys.js';
import { CREDENTIALS, READ, callerOf, sessionOf } from '../access/policy.js';
import {
  body,
  choice,
  flag,
  iso,
  isoOrNull,
  list,
  meaning,
  nameOf,
  nullable,
  optional,
  text,
  timestamp,
  uuid,
} from '../schema/schemas.js';
import { timeOf } from '../schema/times.js';
import { idOf, NoContent, listOrPage, PageQuery, type Routes } from './routes.js';
import { caps } from './billing/spend-caps.js';
import { answerList } from './whole-list.js';

const KIND =
  '`personal`: belongs to its creator and is revoked when the creator leaves; `team`: belongs to the organization';
export function kindOf(options = {}) {
  return choice(API_KEY_KINDS, KIND, options);
}
const READ_ONLY =
  'Whether the key can only read, without access tokens and values of environments, and estimate deploys';
const ALLOWED_ADDRESSES = 'The IP addresses and blocks from which the key can be used';
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
    read_only: flag(READ_ONLY),
    allowed_addresses: nullable(list(Type.String(), `${ALLOWED_ADDRESSES}; null: from every address`)),
    expires_at: nullable(timestamp('From when on the key is refused like a revoked one; null: it never expires')),
    ...optional({
      spend_caps: nullable(Type.Object(caps, { description: 'What the key may spend; null: it has no caps' })),
    }),
  },
  { title: 'ApiKey' },
);

/** What makes a key less than a member; absent or null: nothing. */
const restrictions = {
  read_only: flag(READ_ONLY),
  allowed_addresses: nullable(
    list(Type.String({ maxLength: 49 }), `${ALLOWED_ADDRESSES}, such as 192.0.2.1, 192.0.2.0/24 or 2001:db8::/32`, {
      minItems: 1,
      maxItems: MOST_ALLOWED_ADDRESSES,
    }),
  ),
  expires_at: nullable(
    text('When the key ends: a time in the future, in ISO 8601 with a time zone', { format: 'date-time' }),
  ),
  spend_caps: nullable(meaning(body(optional(caps)), 'What the key may spend; absent caps are none')),
};

export const apiKeyRoutes: Routes = (app, platform) => {
  app.post(
    '/v1/api-keys',
    {
      config: { policy: CREDENTIALS, proof: true, refusals: ['LIMIT_REACHED'] },
      schema: {
        operationId: 'createApiKey',
        summary: 'Create an API key',
        description:
          'Only this response contains the secret. Only an admin can create a key of the kind `team`. The restrictions of a key cannot be changed later, except for its caps.',
        body: body({
          name: nameOf('The name of the key', 64),
          kind: kindOf({ default: 'personal' }),
          ...optional(restrictions),
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
      const { expires_at = null, ...rest } = request.body;
      const { key, secret } = createCappedKey(platform, sessionOf(request), {
        ...rest,
        expires_at: expires_at === null ? null : timeOf('expires_at', expires_at),
      });
      void reply.code(201);
      return { key: apiKeyView(key), secret };
    },
  );

  app.get(
    '/v1/api-keys',
    {
      config: { policy: READ },
      schema: {
        operationId: 'listApiKeys',
        summary: "List the organization's API keys that are neither revoked nor expired, newest first",
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
      config: { policy: CREDENTIALS, servedOnFullDisk: true, refusals: ['API_KEY_NOT_FOUND', 'ADMIN_REQUIRED'] },
      schema: {
        operationId: 'revokeApiKey',
        summary: 'Revoke an API key',
        description:
          'The key stops working at its next request, and its streams end; instances that it has deployed stay. A member who is not an admin can revoke only their own personal keys.',
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
  return {
    ...key,
    read_only: key.read_only === 1,
    allowed_addresses: key.allowed_addresses && [...key.allowed_addresses],
    spend_caps: key.spend_caps && { ...key.spend_caps },
    created_at: iso(key.created_at),
    last_used_at: isoOrNull(key.last_used_at),
    expires_at: isoOrNull(key.expires_at),
  };
}
