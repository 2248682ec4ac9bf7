import { Type } from 'typebox';
import { listIdentities, unlinkIdentity, type Identity } from '../../../services/identity/companies/identities.js';
import { ACCOUNT, accountOf } from '../../access/policy.js';
import { iso, isoOrNull, nullable, text, timestamp, uuid } from '../../schema/schemas.js';
import { NoContent, PageQuery, idOf, listOrPage, type Routes } from '../routes.js';
import { answerList } from '../whole-list.js';

const LinkedAccount = Type.Object(
  {
    id: uuid('The id of the link'),
    issuer_id: nullable(text('The id of the sign-in of the company; null: the operator has removed it')),
    issuer_name: nullable(text('The name of the company; null: the operator has removed its sign-in')),
    issuer: text('The address of the issuer'),
    email: text('The e-mail address at the company when the accounts were linked'),
    created_at: timestamp('When the accounts were linked'),
    last_used_at: nullable(timestamp('When the user last signed in with it; null: never since')),
  },
  { title: 'LinkedAccount' },
);

/** Routes for the accounts at companies that are linked to the signed-in user's. */
export const identityRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/me/identities',
    {
      config: { policy: ACCOUNT },
      schema: {
        operationId: 'listIdentities',
        summary: 'List your linked accounts at companies, newest first',
        description: 'They are linked on the pages: see /account/companies.',
        querystring: PageQuery,
        response: { 200: listOrPage(LinkedAccount) },
      },
    },
    (request, reply) =>
      answerList(reply, request.query, (query) => listIdentities(platform, accountOf(request), query), identityView),
  );

  app.delete(
    '/v1/me/identities/:id',
    {
      config: { policy: ACCOUNT, refusals: ['IDENTITY_NOT_FOUND', 'LAST_SIGN_IN', 'PROOF_REQUIRED'] },
      schema: {
        operationId: 'removeIdentity',
        summary: 'Unlink an account at a company',
        description: 'Sessions stay. Refused for the last way in which the user can sign in.',
        params: idOf('linked account'),
        response: { 204: NoContent },
      },
    },
    (request, reply) => {
      unlinkIdentity(platform, accountOf(request), request.params.id);
      void reply.code(204);
      return null;
    },
  );
};

function identityView({ id, issuer_id, issuer_name, issuer, email, created_at, last_used_at }: Identity) {
  return {
    id,
    issuer_id,
    issuer_name,
    issuer,
    email,
    created_at: iso(created_at),
    last_used_at: isoOrNull(last_used_at),
  };
}
