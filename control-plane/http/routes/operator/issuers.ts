import { Type } from 'typebox';
import { DOMAIN_ROLES } from '../../../domain/identity/company.js';
import { SESSION_HOURS } from '../../../domain/identity/company-session.js';
import {
  changeIssuer,
  listIssuers,
  removeIssuer,
  setIssuer,
  type Issuer as IssuerDetails,
} from '../../../services/identity/companies/issuers.js';
import { OPERATOR, accountOf } from '../../access/policy.js';
import {
  body,
  choice,
  flag,
  formed,
  integer,
  iso,
  list,
  nameOf,
  nullable,
  optional,
  text,
  timestamp,
  uuid,
} from '../../schema/schemas.js';
import { NoContent, PageQuery, idOf, page, viewPage, type Routes } from '../routes.js';

const DOMAINS = 'The domains of e-mail addresses that it may assert; no two issuers have the same';
const DOMAIN = formed(
  'The domain, in lower case; domains below it do not count',
  '^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$',
  'be a domain in lower case, such as example.com',
  { minLength: 3, maxLength: 253 },
);
const ROLE = choice(DOMAIN_ROLES, 'What new accounts are in the organization');
const JOINS = nullable(uuid('The organization that new accounts join; null: each gets its own'));
const OFF = flag('Whether users with addresses of this domain, other than operators, cannot use passwords');

const ACCEPT =
  'Whether addresses of this domain count of which the issuer does not say that it has verified them, as Microsoft Entra. Only for an issuer that the company alone runs; at Microsoft that is one tenant, which must send the claim `xms_edov`';

const HOURS = nullable(
  integer(
    'How many hours a session lasts that this sign-in opens, whatever its use; null: as long as any other. It counts for sessions that are opened or renewed from then on. No API key ends with a session',
    { minimum: SESSION_HOURS.least, maximum: SESSION_HOURS.most },
  ),
);
const RENEWS =
  'Whether a session in the second half of `session_hours` is renewed when its user opens a page: the browser is led through the issuer, which asks nothing (`prompt=none`). Whom the issuer refuses as unknown or disabled loses its sessions and leaves the organizations of its domains';

const Domain = Type.Object({
  domain: DOMAIN,
  organization_id: JOINS,
  role: ROLE,
  passwords_off: OFF,
  accept_unverified: flag(ACCEPT),
});
const DomainBody = body({
  domain: DOMAIN,
  ...optional({
    organization_id: JOINS,
    role: choice(DOMAIN_ROLES, 'What new accounts are in the organization', { default: 'member' }),
    passwords_off: flag('Whether users with addresses of this domain, other than operators, cannot use passwords', {
      default: false,
    }),
    accept_unverified: flag(ACCEPT, { default: false }),
  }),
});

const Issuer = Type.Object(
  {
    id: text('The word that the operator has chosen; it is part of `redirect_path`'),
    name: text('The name of the company, as people see it'),
    issuer: text('The address of the issuer'),
    client_id: text('What the issuer knows this control plane by'),
    has_client_secret: flag('Whether the secret is known; false: the key of the database was lost, set it again'),
    listed: flag('Whether the page to sign in names the company to everybody'),
    session_hours: HOURS,
    renews_sessions: flag(RENEWS),
    domains: list(Domain, DOMAINS),
    redirect_path: text(
      'Where the issuer sends browsers back, at the address of this control plane: register it there',
    ),
    created_at: timestamp('When it was added'),
  },
  { title: 'Issuer' },
);

const settings = {
  name: nameOf('The name of the company, as people see it', 64),
  issuer: text('The address of the issuer: https, as in its metadata', { minLength: 1, maxLength: 512 }),
  client_id: text('What the issuer knows this control plane by', { minLength: 1, maxLength: 256 }),
  client_secret: text('The secret for it; no answer has it', { minLength: 1, maxLength: 1_024 }),
};
const domains = list(DomainBody, DOMAINS, { maxItems: 100 });

/** What an id must be, for the only route that makes one. */
const NewId = Type.Object({
  id: formed(
    'A word of small letters, digits and hyphens',
    '^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$',
    'have at most 32 small letters, digits and hyphens, and neither begin nor end with a hyphen',
  ),
});

/** Routes for operators: the sign-ins of companies. */
export const issuerRoutes: Routes = (app, platform) => {
  const refusals = ['ISSUER_TAKEN', 'ORGANIZATION_NOT_FOUND'] as const;

  app.get(
    '/v1/operator/issuers',
    {
      config: { policy: OPERATOR },
      schema: {
        operationId: 'listIssuers',
        summary: 'List the sign-ins of companies, newest first',
        querystring: PageQuery,
        response: { 200: page(Issuer) },
      },
    },
    (request) => viewPage(listIssuers(platform, request.query), issuerView),
  );

  app.put(
    '/v1/operator/issuers/:id',
    {
      config: { policy: OPERATOR, proof: true, refusals: [...refusals, 'LIMIT_REACHED'] },
      schema: {
        operationId: 'replaceIssuer',
        summary: 'Add the sign-in of a company, or replace its settings',
        description:
          'OpenID Connect, with discovery. Whoever controls the issuer signs in as everybody at its domains: add only domains that belong to the company. At most 100 issuers.',
        params: NewId,
        body: body({
          ...settings,
          ...optional({
            domains,
            listed: flag('Whether the page to sign in names the company to everybody', { default: false }),
            session_hours: HOURS,
            renews_sessions: flag(RENEWS, { default: false }),
          }),
        }),
        response: { 200: Issuer },
      },
    },
    (request) => {
      const {
        listed = false,
        session_hours = null,
        renews_sessions = false,
        domains: given = [],
        ...rest
      } = request.body;
      const wanted = { ...rest, listed, session_hours, renews_sessions, domains: given.map(domainOf) };
      return issuerView(setIssuer(platform, accountOf(request), request.params.id, wanted));
    },
  );

  app.patch(
    '/v1/operator/issuers/:id',
    {
      config: { policy: OPERATOR, proof: true, refusals: [...refusals, 'ISSUER_NOT_FOUND'] },
      schema: {
        operationId: 'updateIssuer',
        summary: 'Change the sign-in of a company',
        description: 'An omitted field stays. `domains` replaces all domains.',
        params: idOf('issuer'),
        body: body(
          optional({
            ...settings,
            domains,
            listed: flag('Whether the page to sign in names the company to everybody'),
            session_hours: HOURS,
            renews_sessions: flag(RENEWS),
          }),
        ),
        response: { 200: Issuer },
      },
    },
    (request) => {
      const { domains: given, ...rest } = request.body;
      const changes = given ? { ...rest, domains: given.map(domainOf) } : rest;
      return issuerView(changeIssuer(platform, accountOf(request), request.params.id, changes));
    },
  );

  app.delete(
    '/v1/operator/issuers/:id',
    {
      config: { policy: OPERATOR, proof: true, refusals: ['ISSUER_NOT_FOUND'] },
      schema: {
        operationId: 'removeIssuer',
        summary: 'Remove the sign-in of a company',
        description:
          'Nobody signs in with it any more, and passwords count again for its domains. Sessions and linked accounts stay; they count again if the same issuer is added again.',
        params: idOf('issuer'),
        response: { 204: NoContent },
      },
    },
    (request, reply) => {
      removeIssuer(platform, accountOf(request), request.params.id);
      void reply.code(204);
      return null;
    },
  );
};

function domainOf({
  domain,
  organization_id = null,
  role = 'member',
  passwords_off = false,
  accept_unverified = false,
}: Type.Static<typeof DomainBody>): IssuerDetails['domains'][number] {
  return { domain, organization_id, role, passwords_off, accept_unverified };
}

function issuerView({ id, name, url, client_id, client_secret_encrypted, is_listed, ...rest }: IssuerDetails) {
  return {
    id,
    name,
    issuer: url,
    client_id,
    has_client_secret: client_secret_encrypted !== null,
    listed: is_listed === 1,
    session_hours: rest.session_hours,
    renews_sessions: rest.renews_sessions === 1,
    domains: rest.domains,
    redirect_path: `/sign-in/company/${id}/return`,
    created_at: iso(rest.created_at),
  };
}
