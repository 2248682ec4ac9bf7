import { networkOf } from '../../domain/network.js';
import { Type } from 'typebox';
import {
  changePassword,
  describeUser,
  signIn,
  signOut,
  signUp,
  type SignedIn,
} from '../../services/accounts/accounts.js';
import { acceptInvite } from '../../services/accounts/invites.js';
import { leave } from '../../services/accounts/members.js';
import { ACCOUNT, PUBLIC, accountOf } from '../policy.js';
import { Timestamp, Uuid, body, iso, nullable, nameOf } from '../schemas.js';
import { IdParams, NoContent, type Routes } from './routes.js';

export const Email = Type.String({ format: 'email', maxLength: 254 });
const Password = Type.String({ minLength: 12, maxLength: 256 });
export const RoleName = Type.Enum(['admin', 'member']);
const User = Type.Object(
  { id: Uuid, email: Type.String(), name: Type.String(), created_at: Timestamp },
  { title: 'User' },
);
const Organization = Type.Object({ id: Uuid, name: Type.String(), role: RoleName });
const Session = Type.Object(
  {
    token: Type.String(),
    expires_at: Timestamp,
    user: User,
    organization: nullable(Organization),
  },
  { title: 'Session' },
);
const Me = Type.Object(
  {
    user: Type.Intersect([User, Type.Object({ is_operator: Type.Boolean() })]),
    memberships: Type.Array(Type.Object({ organization_id: Uuid, name: Type.String(), role: RoleName })),
    active_organization_id: nullable(Uuid),
  },
  { title: 'Me' },
);

/** Sessions and passwords. */
export const authRoutes: Routes = (app, platform) => {
  app.post(
    '/v1/auth/sign-up',
    {
      config: { policy: PUBLIC, guessable: 'per address', refusals: ['EMAIL_TAKEN'] },
      schema: {
        summary: 'Make an account and an organization of its own',
        body: body({ email: Email, password: Password, name: nameOf(64) }),
        response: { 201: Session },
      },
    },
    async (request, reply) => {
      void reply.code(201);
      return sessionView(await signUp(platform, request.body, networkOf(request.ip)));
    },
  );

  app.post(
    '/v1/auth/sign-in',
    {
      config: { policy: PUBLIC, guessable: true, refusals: ['INVALID_CREDENTIALS'] },
      schema: {
        summary: 'Open a session',
        body: body({ email: Email, password: Type.String({ maxLength: 256 }) }),
        response: { 200: Session },
      },
    },
    async (request) => sessionView(await signIn(platform, request.body, networkOf(request.ip))),
  );

  app.post(
    '/v1/auth/sign-out',
    { config: { policy: ACCOUNT }, schema: { summary: 'End this session', response: { 204: NoContent } } },
    (request, reply) => {
      signOut(platform, accountOf(request).sessionId);
      void reply.code(204);
      return null;
    },
  );

  app.post(
    '/v1/auth/password',
    {
      config: { policy: ACCOUNT, guessable: true, refusals: ['INVALID_CREDENTIALS'] },
      schema: {
        summary: 'Change the password; every other session ends',
        body: body({ current_password: Type.String({ maxLength: 256 }), new_password: Password }),
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

/** The signed-in user's own account, and what it belongs to. */
export const accountRoutes: Routes = (app, platform) => {
  app.delete(
    '/v1/me/organizations/:id',
    {
      config: { policy: ACCOUNT, refusals: ['MEMBER_NOT_FOUND', 'LAST_ADMIN'] },
      schema: {
        summary: 'Leave an organization; personal keys made in it are revoked',
        params: IdParams,
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
        summary: 'Join the organization that an invitation names',
        params: Type.Object({ token: Type.String() }),
        response: { 200: Organization },
      },
    },
    (request) => acceptInvite(platform, accountOf(request), request.params.token),
  );

  app.get(
    '/v1/me',
    {
      config: { policy: ACCOUNT },
      schema: { summary: 'The signed-in user and its organizations', response: { 200: Me } },
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

function sessionView({ token, expiresAt, user, organization }: SignedIn) {
  return { token, expires_at: iso(expiresAt), user: { ...user, created_at: iso(user.created_at) }, organization };
}
