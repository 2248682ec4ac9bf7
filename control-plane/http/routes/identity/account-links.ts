import { Type } from 'typebox';
import { confirmSignUp } from '../../../services/identity/sign-in/confirm-sign-up.js';
import {
  makeResetLink,
  requestPasswordReset,
  resetPassword,
} from '../../../services/identity/sign-in/password-reset.js';
import { clientNetwork, sessionOrigin } from '../../access/client.js';
import { OPERATOR, PUBLIC, accountOf } from '../../access/policy.js';
import { body, flag, iso, nameOf, optional, text, timestamp } from '../../schema/schemas.js';
import { MAILED, Mailed, Session, emailOf, linkToken, newPassword, presentPassword, sessionView } from './accounts.js';
import { NoContent, idOf, type Routes } from '../routes.js';

const ResetLink = Type.Object(
  { token: text('Its token, shown only here'), expires_at: timestamp('Until when it works') },
  { title: 'ResetLink' },
);

/** Routes for links that set a new password, or confirm the address of a new account. */
export const accountLinkRoutes: Routes = (app, platform) => {
  app.post(
    '/v1/auth/password-reset',
    {
      config: { policy: PUBLIC, guessable: 'per address', refusals: ['MAIL_OFF', 'LIMIT_REACHED'] },
      schema: {
        operationId: 'requestPasswordReset',
        summary: 'Ask for a link to a new password',
        description:
          'The link is mailed to the address, if it has an account. It works once, within an hour. At most three are sent in an hour.',
        body: body({ email: emailOf('the user') }),
        response: { 202: Mailed },
      },
    },
    (request, reply) => {
      requestPasswordReset(platform, request.body.email, clientNetwork(request));
      void reply.code(202);
      return MAILED;
    },
  );

  app.post(
    '/v1/auth/password-reset/confirm',
    {
      config: { policy: PUBLIC, guessable: 'per address', refusals: ['LINK_INVALID', 'PASSWORD_OFF'] },
      schema: {
        operationId: 'resetPassword',
        summary: 'Set a new password by a link',
        description: 'Ends all sessions of the user and all other links to a new password. Opens no session.',
        body: body({
          token: linkToken,
          new_password: newPassword,
          ...optional({
            revoke_api_keys: flag('Whether all API keys and invitations that the user has made end, too', {
              default: false,
            }),
          }),
        }),
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      await resetPassword(platform, request.body, clientNetwork(request));
      void reply.code(204);
      return null;
    },
  );

  app.post(
    '/v1/auth/sign-up/confirm',
    {
      config: {
        policy: PUBLIC,
        guessable: 'per address',
        refusals: [
          'LINK_INVALID',
          'INVALID_CREDENTIALS',
          'INVITATION_REQUIRED',
          'INVITE_NOT_FOUND',
          'EMAIL_TAKEN',
          'PASSWORD_OFF',
        ],
      },
      schema: {
        operationId: 'confirmSignUp',
        summary: 'Create the account of a sign-up, by the link that was mailed',
        description:
          'Needs the password of the sign-up, because somebody else can have signed up with the address. After five wrong ones the link is of no use.',
        body: body({ token: linkToken, password: presentPassword }),
        response: { 201: Session },
      },
    },
    async (request, reply) => {
      const signedIn = await confirmSignUp(platform, request.body, sessionOrigin(request));
      void reply.code(201);
      return sessionView(signedIn);
    },
  );

  app.post(
    '/v1/operator/users/:id/password-reset',
    {
      config: { policy: OPERATOR, proof: true, refusals: ['USER_NOT_FOUND', 'PASSWORD_OFF'] },
      schema: {
        operationId: 'createPasswordResetLink',
        summary: 'Make a link with which a user sets a new password',
        description:
          'For users whom no mail reaches: pass the token on to the person whose account it is. It works once, within an hour, with POST /v1/auth/password-reset/confirm. The reason is in the audit log, and in those of the organizations of the user.',
        params: idOf('user'),
        body: body({ reason: nameOf('The reason; the organizations of the user read it', 256) }),
        response: { 201: ResetLink },
      },
    },
    (request, reply) => {
      const { token, expiresAt } = makeResetLink(platform, accountOf(request), request.params.id, request.body.reason);
      void reply.code(201);
      return { token, expires_at: iso(expiresAt) };
    },
  );
};
