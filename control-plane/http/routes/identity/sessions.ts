import { Type } from 'typebox';
import {
  endOtherSessions,
  endSession,
  listSessions,
  type SessionDetails,
} from '../../../services/identity/sessions/sessions.js';
import { makeSignInLink } from '../../../services/identity/sign-in/sign-in-links.js';
import { clearSessionCookie, isByCookie } from '../../access/cookies.js';
import { ACCOUNT, accountOf } from '../../access/policy.js';
import { flag, integer, iso, nullable, text, timestamp, uuid } from '../../schema/schemas.js';
import { idOf, NoContent, listOrPage, PageQuery, type Routes } from '../routes.js';
import { answerList } from '../whole-list.js';

const ActiveSession = Type.Object(
  {
    id: uuid('The id of the session'),
    name: nullable(text('What the program calls it that has asked for it; null: a person has signed in')),
    device: nullable(
      text('The browser or program that opened it, as it has described itself, such as `Firefox on Windows`'),
    ),
    address: nullable(
      text(
        'The address of its last use; of an IPv6 address only the first 48 bits; null for a session that an older release has opened',
      ),
    ),
    created_at: timestamp('When the user signed in'),
    last_used_at: timestamp('When it was last used'),
    is_current: flag('Whether this request uses it'),
  },
  { title: 'ActiveSession' },
);

const SignInLink = Type.Object(
  {
    token: text('Its token, shown only here: the link is /sign-in/link#TOKEN at the address of the control plane'),
    expires_at: timestamp('Until when it works'),
  },
  { title: 'SignInLink' },
);

/** Routes for the list of the signed-in user's sessions. */
export const sessionRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/auth/sessions',
    {
      config: { policy: ACCOUNT },
      schema: {
        operationId: 'listSessions',
        summary: 'List where you are signed in',
        querystring: PageQuery,
        response: { 200: listOrPage(ActiveSession) },
      },
    },
    (request, reply) =>
      answerList(reply, request.query, (query) => listSessions(platform, accountOf(request), query), sessionView),
  );

  app.delete(
    '/v1/auth/sessions/:id',
    {
      config: { policy: ACCOUNT, servedOnFullDisk: true, refusals: ['SESSION_NOT_FOUND'] },
      schema: {
        operationId: 'revokeSession',
        summary: 'End a session',
        description:
          'Its next request is refused, and its streams of events end. You can also end the session that you use.',
        params: idOf('session'),
        response: { 204: NoContent },
      },
    },
    (request, reply) => {
      const caller = accountOf(request);
      endSession(platform, caller, request.params.id);
      if (request.params.id === caller.sessionId && isByCookie(request)) clearSessionCookie(reply);
      void reply.code(204);
      return null;
    },
  );

  app.delete(
    '/v1/auth/sessions',
    {
      config: { policy: ACCOUNT, servedOnFullDisk: true },
      schema: {
        operationId: 'revokeOtherSessions',
        summary: 'End all sessions but this one',
        response: { 200: Type.Object({ ended: integer('How many sessions were ended') }) },
      },
    },
    (request) => ({ ended: endOtherSessions(platform, accountOf(request)) }),
  );

  app.post(
    '/v1/auth/sign-in-link',
    {
      config: { policy: ACCOUNT, refusals: ['PROOF_REQUIRED'] },
      schema: {
        operationId: 'createSignInLink',
        summary: 'Make a link with which a browser signs in as you',
        description:
          'It works once, within ten minutes, as long as this session lasts. A session has one at a time: another one ends the one before. The token belongs after a `#`, which browsers send to nobody.',
        response: { 201: SignInLink },
      },
    },
    (request, reply) => {
      const { token, expiresAt } = makeSignInLink(platform, accountOf(request));
      void reply.code(201);
      return { token, expires_at: iso(expiresAt) };
    },
  );
};

function sessionView({ id, name, device, network, created_at, last_used_at, isCurrent }: SessionDetails) {
  return {
    id,
    name,
    device,
    address: network,
    created_at: iso(created_at),
    last_used_at: iso(last_used_at),
    is_current: isCurrent,
  };
}
