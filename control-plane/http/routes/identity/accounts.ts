import { ROLES } from '../../../domain/caller.js';
import { Type } from 'typebox';
import { Refusal } from '../../../domain/refusal.js';
import { changePassword } from '../../../services/identity/sign-in/change-password.js';
import { describeUser } from '../../../services/identity/users/users.js';
import { signIn, signOut, type SignedIn } from '../../../services/identity/sign-in/sign-in.js';
import { signUp } from '../../../services/identity/sign-in/sign-up.js';
import type { FactorStep } from '../../../services/identity/sign-in/begin-second-step.js';
import { acceptInvite } from '../../../services/organizations/invites.js';
import { leave } from '../../../services/organizations/members.js';
import { sessionOrigin } from '../../access/client.js';
import { clearSessionCookie, isByCookie } from '../../access/cookies.js';
import { ACCOUNT, PUBLIC, accountOf } from '../../access/policy.js';
import {
  body,
  choice,
  flag,
  iso,
  list,
  meaning,
  nameOf,
  nullable,
  optional,
  text,
  timestamp,
  uuid,
} from '../../schema/schemas.js';
import { idOf, NoContent, type Routes } from '../routes.js';

export function emailOf(whose: string) {
  return text(`The e-mail address of ${whose}`, { format: 'email', maxLength: 254 });
}
export const newPassword = text('The password: at least 12 characters', { minLength: 12, maxLength: 256 });
export const linkToken = text('The token of the link', { maxLength: 128 });
export const presentPassword = text('The current password', { maxLength: 256 });
const WHAT_ROLES_DO =
  '`admin` can do everything; `member` uses and changes instances and templates, and makes API keys; `viewer` only reads, without secrets; `billing` reads about money, pays and sets caps. A later release can add roles';
export function roleOf(whose: string, options = {}) {
  return choice(ROLES, `The role of ${whose}: ${WHAT_ROLES_DO}`, options);
}
export const User = Type.Object(
  {
    id: uuid('The id of the user'),
    email: text('The e-mail address with which the user signs in'),
    name: text('The name of the user'),
    created_at: timestamp('When the account was created'),
  },
  { title: 'User' },
);
export const JoinedOrganization = Type.Object({
  id: uuid('The id of the organization'),
  name: text('The name of the organization'),
  role: roleOf('the user in the organization'),
});
export const Session = Type.Object(
  {
    token: text('The session token: send it as `Authorization: Bearer`'),
    expires_at: timestamp('When the session ends, unless it is used before then'),
    user: meaning(User, 'The user who is signed in'),
    organization: nullable(meaning(JoinedOrganization, 'The active organization; null for a user who belongs to none')),
  },
  { title: 'Session' },
);
/** What a request answers that may lead to a mail: the same for every address. */
export const Mailed = Type.Object(
  {
    mailed: choice(
      ['if_possible'],
      'A mail goes to the address, if it is one that gets it; nothing tells whether it is',
    ),
  },
  { title: 'Mailed' },
);
export const MAILED = { mailed: 'if_possible' as const };

const Membership = Type.Object({
  organization_id: uuid('The id of the organization'),
  name: text('The name of the organization'),
  role: roleOf('the user in the organization'),
});
const Me = Type.Object(
  {
    user: Type.Intersect(
      [User, Type.Object({ is_operator: flag('Whether the user can use the routes under /v1/operator') })],
      { description: 'The signed-in user' },
    ),
    memberships: list(Membership, 'The organizations to which the user belongs, in the order in which the user joined'),
    active_organization_id: nullable(
      uuid('The organization on which this session acts; null for a user who belongs to none'),
    ),
  },
  { title: 'Me' },
);

/** Routes for sessions and passwords. */
export const authRoutes: Routes = (app, platform) => {
  app.post(
    '/v1/auth/sign-up',
    {
      config: {
        policy: PUBLIC,
        guessable: 'per address',
        refusals: ['EMAIL_TAKEN', 'INVITATION_REQUIRED', 'INVITE_NOT_FOUND', 'LIMIT_REACHED', 'PASSWORD_OFF'],
      },
      schema: {
        operationId: 'signUp',
        summary: 'Create an account and an organization for it',
        description:
          'With `invite_token`, the account joins the organization of that invitation instead. A control plane that allows new accounts only by invitation requires it. A control plane that sends mail answers 202 to every address and creates the account once its link is confirmed; at most three are sent to an address in an hour, and some more if sign-ups with it come from several networks.',
        body: body({
          email: emailOf('the new user'),
          password: newPassword,
          name: nameOf('The name of the user, and at first also of the organization', 64),
          ...optional({
            invite_token: text('The token of an invitation for this e-mail address', { maxLength: 128 }),
          }),
        }),
        response: { 201: Session, 202: Mailed },
      },
    },
    async (request, reply) => {
      const signedIn = await signUp(platform, request.body, sessionOrigin(request));
      void reply.code(signedIn ? 201 : 202);
      return signedIn ? sessionView(signedIn) : MAILED;
    },
  );

  app.post(
    '/v1/auth/sign-in',
    {
      config: {
        policy: PUBLIC,
        servedOnFullDisk: true,
        guessable: true,
        refusals: ['INVALID_CREDENTIALS', 'PASSWORD_OFF', 'SECOND_FACTOR_REQUIRED'],
      },
      schema: {
        operationId: 'signIn',
        summary: 'Open a session',
        description:
          'The token lasts 30 days from its last use. A user with a second factor gets SECOND_FACTOR_REQUIRED with a `factor_token` instead: go on with POST /v1/auth/second-factor.',
        body: body({ email: emailOf('the user'), password: presentPassword }),
        response: { 200: Session },
      },
    },
    async (request) => {
      const signedIn = await signIn(platform, request.body, sessionOrigin(request));
      if ('factorToken' in signedIn) throw secondStep(signedIn);
      return sessionView(signedIn);
    },
  );

  app.post(
    '/v1/auth/sign-out',
    {
      config: { policy: ACCOUNT, servedOnFullDisk: true },
      schema: { operationId: 'signOut', summary: 'End this session', response: { 204: NoContent } },
    },
    (request, reply) => {
      signOut(platform, accountOf(request).sessionId);
      if (isByCookie(request)) clearSessionCookie(reply);
      void reply.code(204);
      return null;
    },
  );

  app.post(
    '/v1/auth/password',
    {
      config: { policy: ACCOUNT, guessable: true, refusals: ['INVALID_CREDENTIALS', 'PASSWORD_OFF', 'PROOF_REQUIRED'] },
      schema: {
        operationId: 'changePassword',
        summary: 'Change the password',
        description: 'Ends all other sessions of the user.',
        body: body({
          current_password: presentPassword,
          new_password: newPassword,
          ...optional({
            revoke_api_keys: flag(
              'Whether to revoke also every API key that you have created, in all organizations, team keys included, and to withdraw the invitations that you have made',
            ),
          }),
        }),
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      await changePassword(platform, accountOf(request), request.body);
      void reply.code(204);
      return null;
    },
  );
};

/** Routes for the signed-in user's own account and its organizations. */
export const accountRoutes: Routes = (app, platform) => {
  app.delete(
    '/v1/me/organizations/:id',
    {
      config: { policy: ACCOUNT, refusals: ['MEMBER_NOT_FOUND', 'LAST_ADMIN'] },
      schema: {
        operationId: 'leaveOrganization',
        summary: 'Leave an organization',
        description: "Revokes the user's personal API keys of the organization. The last admin cannot leave.",
        params: idOf('organization'),
        response: { 204: NoContent },
      },
    },
    (request, reply) => {
      leave(platform, accountOf(request), request.params.id);
      void reply.code(204);
      return null;
    },
  );

  app.post(
    '/v1/invites/:token/accept',
    {
      config: { policy: ACCOUNT, refusals: ['INVITE_NOT_FOUND', 'ALREADY_MEMBER'] },
      schema: {
        operationId: 'acceptInvite',
        summary: 'Join the organization of an invitation',
        params: Type.Object({ token: text('The token of the invitation') }),
        response: { 200: JoinedOrganization },
      },
    },
    (request) => acceptInvite(platform, accountOf(request), request.params.token),
  );

  app.get(
    '/v1/me',
    {
      config: { policy: ACCOUNT },
      schema: { operationId: 'getMe', summary: 'Get the signed-in user and its organizations', response: { 200: Me } },
    },
    (request) => {
      const caller = accountOf(request);
      const { user, memberships } = describeUser(platform, caller.userId);
      return {
        user: { ...user, is_operator: user.is_operator === 1, created_at: iso(user.created_at) },
        memberships: memberships.map(({ organizationId, name, role }) => ({
          organization_id: organizationId,
          name,
          role,
        })),
        active_organization_id: caller.kind === 'session' ? caller.organizationId : null,
      };
    },
  );
};

/** Says that a sign-in goes on with a second factor. The token is stored already: a refusal undoes nothing outside its use case. */
function secondStep({ factorToken, expiresAt, kinds }: FactorStep): Refusal {
  return new Refusal(
    'SECOND_FACTOR_REQUIRED',
    'the password is right, and this account has a second factor: give it with POST /v1/auth/second-factor and this factor_token',
    { factor_token: factorToken, expires_at: iso(expiresAt), factors: kinds },
  );
}

export function sessionView({ token, expiresAt, user, organization }: SignedIn) {
  return { token, expires_at: iso(expiresAt), user: { ...user, created_at: iso(user.created_at) }, organization };
}
