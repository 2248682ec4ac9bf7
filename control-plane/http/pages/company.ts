import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import {
  beginCompanySignIn,
  finishCompanySignIn,
  type Outcome,
} from '../../services/identity/sign-in/company-sign-in.js';
import { findIssuerFor } from '../../services/identity/companies/issuers.js';
import type { App } from '../../services/parts/parts.js';
import { clientNetwork, sessionOrigin } from '../access/client.js';
import {
  clearSessionCookie,
  companyCookie,
  ownOrigin,
  refuseAmongInstances,
  setCompanyCookie,
} from '../access/cookies.js';
import { PUBLIC } from '../access/policy.js';
import { emailOf } from '../routes/identity/accounts.js';
import { optional, text } from '../schema/schemas.js';
import { COMPANIES, LINK_COMPANY, startOf } from './company-links.js';
import { formOf, type Field } from './forms.js';
import { html } from './html.js';
import { pathTo, SIGN_IN, type FormSpec, type PageSpec } from './pages.js';
import { COMPANY, MOST_CHARS, ownPath, returnPathOf } from './return-to.js';
import { consoleOf, EMAIL, HOME, proceed } from './sign-in.js';
import { signedIn } from './visitor.js';

/** The page that is shown when a company's account is not linked, but its address has an account. */
export const KNOWN = '/sign-in/company/known';

const RETURN_TO: Field = { name: 'return_to', label: null, wrong: 'The address to return to is too long.' };
const FIELDS: readonly Field[] = [
  { ...EMAIL, label: 'Your e-mail address at the company', autocomplete: 'email' },
  RETURN_TO,
];

export const companyPage: PageSpec = {
  path: COMPANY,
  operation: 'showCompanySignIn',
  summary: 'The page to find the sign-in of a company',
  needs: 'nobody',
  reads: ['found', 'return_to'],
  render: (view) => {
    const { found, return_to } = view.values;
    const next = ownPath(return_to);
    return {
      title: 'Sign in with your company',
      content: [
        found === undefined
          ? formOf({ action: COMPANY, fields: FIELDS, button: 'Find my company' }, view)
          : html`<p><a href="${startOf(found, { return_to: next })}">Go on to the sign-in of your company</a></p>`,
        html`<p><a href="${pathTo(SIGN_IN, { return_to: next })}">Back to the sign-in</a></p>`,
      ],
    };
  },
};

const companyBody = Type.Object({
  email: emailOf('the user'),
  ...optional({ return_to: text('Where to go then', { maxLength: MOST_CHARS }) }),
});

export const companyForm: FormSpec<typeof companyBody> = {
  servedOnFullDisk: true,
  path: COMPANY,
  operation: 'submitCompany',
  summary: 'Find the sign-in of a company',
  page: companyPage,
  fields: FIELDS,
  body: companyBody,
  guessable: 'per address',
  words: { ISSUER_NOT_FOUND: 'No sign-in of a company is set up for this address' },
  submit: ({ email, return_to }, { platform }) =>
    pathTo(COMPANY, { found: findIssuerFor(platform, email).id, return_to: ownPath(return_to) }),
};

/** Routes that lead to the sign-in of a company and back. They are no pages: they only lead on. */
export function companyRoutes(app: FastifyInstance, platform: App): void {
  const config = { policy: PUBLIC, back: SIGN_IN } as const;
  const of = (operationId: string, summary: string) => ({
    hide: true,
    operationId,
    summary,
    params: Type.Object({ id: text('The id of the issuer') }),
    response: { 200: text('The page') },
  });
  const route = { config, exposeHeadRoute: false } as const;

  app.get<{ Params: { id: string }; Querystring: Record<string, unknown> }>(
    `${COMPANY}/:id/start`,
    { ...route, schema: of('startCompanySignIn', 'Go to the sign-in of a company') },
    async (request, reply) => reply.redirect(await begin(platform, request, reply), 303),
  );

  app.get<{ Params: { id: string } }>(
    returnPathOf(':id'),
    { ...route, schema: of('returnFromCompany', 'Come back from the sign-in of a company') },
    async (request, reply) => {
      refuseAmongInstances(platform, request);
      const answer = new URL(request.url, 'http://nowhere.invalid').search;
      const sessionId = signedIn(platform, request)?.sessionId;
      const asked = { issuerId: request.params.id, browser: companyCookie(request), answer, sessionId };
      const outcome = await finishCompanySignIn(platform, asked, sessionOrigin(request));
      return reply.redirect(pathAfter(outcome, platform, request, reply), 303);
    },
  );
}

type StartRequest = FastifyRequest<{ Params: { id: string }; Querystring: Record<string, unknown> }>;

/** Returns the address of the issuer to which the browser goes. The browser is known again by a cookie. */
async function begin(platform: App, request: StartRequest, reply: FastifyReply): Promise<string> {
  refuseAmongInstances(platform, request);
  const { return_to, link, again } = request.query;
  const caller = link === undefined ? undefined : signedIn(platform, request);
  if (link !== undefined && !caller) return pathTo(SIGN_IN, { return_to: COMPANIES });
  const browser = companyCookie(request) ?? platform.ids.hex(16);
  const { id: issuerId } = request.params;
  const next = await beginCompanySignIn(platform, {
    issuerId,
    browser,
    network: clientNetwork(request),
    linkTo: caller?.userId ?? null,
    isAgain: again !== undefined,
    redirectUri: ownOrigin(platform, request) + returnPathOf(issuerId),
    returnTo: typeof return_to === 'string' ? ownPath(return_to) : undefined,
  });
  setCompanyCookie(reply, browser);
  return next;
}

function pathAfter(outcome: Outcome, platform: App, request: FastifyRequest, reply: FastifyReply): string {
  switch (outcome.kind) {
    case 'session':
      return proceed({ platform, request, reply, caller: undefined }, outcome.signedIn, outcome.returnTo);
    case 'known':
      return pathTo(KNOWN, { token: outcome.token });
    case 'link':
      return pathTo(LINK_COMPANY, { token: outcome.token });
    case 'linked':
      return pathTo(COMPANIES, { done: 'company-linked' });
    case 'renewal':
      return pathAfterRenewal(outcome, request, reply);
  }
}

function pathAfterRenewal(
  { outcome, returnTo }: Outcome & { kind: 'renewal' },
  request: FastifyRequest,
  reply: FastifyReply,
): string {
  switch (outcome) {
    case 'renewed':
    case 'stays':
      return ownPath(returnTo) ?? consoleOf(request) ?? HOME;
    case 'another':
      return pathTo(SIGN_IN, { done: 'company-another', return_to: ownPath(returnTo) });
    case 'refused':
      clearSessionCookie(reply);
      return pathTo(SIGN_IN, { done: 'company-refused' });
  }
}
