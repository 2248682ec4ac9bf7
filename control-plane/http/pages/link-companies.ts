import { Type } from 'typebox';
import { describeAsserted, linkAsserted } from '../../services/identity/companies/asserted-accounts.js';
import { claimAccount } from '../../services/identity/sign-in/claim-account.js';
import { listIdentities, unlinkIdentity, type Identity } from '../../services/identity/companies/identities.js';
import { listedIssuers } from '../../services/identity/companies/issuers.js';
import { LIMITS } from '../../services/system/row-limits.js';
import { sessionOrigin } from '../access/client.js';
import { companyCookie } from '../access/cookies.js';
import { text, uuid } from '../schema/schemas.js';
import { userOf } from './account.js';
import { COMPANIES, LINK_COMPANY, startOf } from './company-links.js';
import { KNOWN } from './company.js';
import { formOf, type Field } from './forms.js';
import { html, type Part } from './html.js';
import { noticeOf } from './notices.js';
import { pathTo, SIGN_IN, type FormSpec, type PageSpec, type View } from './pages.js';
import { HOME, proceed } from './sign-in.js';

const CLAIM = '/sign-in/company/claim';
const UNLINK = '/account/companies/unlink';

const TOKEN: Field = { name: 'token', label: null, wrong: "Begin the company's sign-in again." };
const tokenBody = Type.Object({ token: text('What the company has asserted', { maxLength: 64 }) });

function linkableOf({ platform, values, browser }: View) {
  return describeAsserted(platform, values['token'] ?? '', browser);
}

export const knownPage: PageSpec = {
  path: KNOWN,
  operation: 'showKnownAccount',
  summary: 'The page for somebody whose address at a company has an account',
  needs: 'nobody',
  reads: ['token'],
  render: (view) => {
    const { company, email, isClaimable } = linkableOf(view);
    const link = pathTo(LINK_COMPANY, { token: view.values['token'] });
    return {
      title: 'You have an account already',
      content: [
        html`<p>
          ${company} says that you are ${email}. There is an account with this address, and it is not linked.
        </p>`,
        html`<p><a href="${pathTo(SIGN_IN, { return_to: link })}">Sign in to this account, and link it</a></p>`,
        isClaimable ? claimOf(view) : html`<p>If you cannot sign in to it, ask the operator of this service.</p>`,
      ],
    };
  },
};

function claimOf(view: View): Part {
  return [
    html`<h2>You do not know its password?</h2>
      <p>
        Nobody has ever confirmed the address of this account, so somebody else can have created it. You can have it
        without its password. Then it loses its password, all sessions, API keys and SSH keys, and leaves all its
        organizations.
      </p>`,
    formOf({ action: CLAIM, fields: [TOKEN], button: 'Take the account without its password', isQuiet: true }, view),
  ];
}

export const claimForm: FormSpec<typeof tokenBody> = {
  path: CLAIM,
  operation: 'submitClaim',
  summary: 'Take an account whose address was never confirmed',
  page: knownPage,
  fields: [TOKEN],
  body: tokenBody,
  guessable: 'per address',
  submit: ({ token }, visit) => {
    const browser = companyCookie(visit.request);
    const { next, returnTo } = claimAccount(visit.platform, { token, browser }, sessionOrigin(visit.request));
    return proceed(visit, next, returnTo);
  },
};

export const linkPage: PageSpec = {
  path: LINK_COMPANY,
  operation: 'showLinkCompany',
  summary: 'The page to link an account at a company',
  needs: 'proof',
  reads: ['token'],
  render: (view) => {
    const { company, email, account } = linkableOf(view);
    return {
      title: 'Link the accounts',
      content: [
        html`<p>You are signed in as ${userOf(view).email}.</p>`,
        html`<p>
          Whoever signs in at ${company} as ${email} will be signed in here as ${account}. Link the accounts only if
          both are yours.
        </p>`,
        formOf({ action: LINK_COMPANY, fields: [TOKEN], button: 'Link the accounts' }, view),
        html`<p><a href="${HOME}">Do not link them</a></p>`,
      ],
    };
  },
};

export const linkForm: FormSpec<typeof tokenBody> = {
  path: LINK_COMPANY,
  operation: 'submitLinkCompany',
  summary: 'Link an account at a company',
  page: linkPage,
  fields: [TOKEN],
  body: tokenBody,
  submit: ({ token }, visit) => {
    const returnTo = linkAsserted(visit.platform, userOf(visit), { token, browser: companyCookie(visit.request) });
    return returnTo ?? pathTo(COMPANIES, { done: 'company-linked' });
  },
};

export const companiesPage: PageSpec = {
  path: COMPANIES,
  operation: 'showCompanies',
  summary: 'The page with the linked accounts at companies',
  needs: 'session',
  reads: ['done'],
  render: (view) => {
    const { items } = listIdentities(view.platform, userOf(view), { limit: LIMITS.identities });
    const linked = new Set(items.map(({ issuer_id }) => issuer_id));
    const others = listedIssuers(view.platform).filter(({ id }) => !linked.has(id));
    return {
      title: 'Accounts at companies',
      content: [
        noticeOf(view),
        items.length === 0
          ? html`<p>No account at a company is linked to yours.</p>`
          : html`<ul class="sessions">
              ${items.map((identity) => html`<li>${describe(identity)} ${unlinkButton(view, identity)}</li>`)}
            </ul>`,
        others.map(
          ({ id, name }) => html`<p><a href="${startOf(id, { link: 'yes' })}">Link an account at ${name}</a></p>`,
        ),
        html`<p><a href="${HOME}">Back to your account</a></p>`,
      ],
    };
  },
};

function describe({ issuer, issuer_name, email }: Identity): Part {
  const company = issuer_name ?? `${issuer}, which is not set up any more`;
  return html`<strong>${email}</strong> at ${company}.`;
}

const IDENTITY_ID: Field = { name: 'identity_id', label: null, wrong: 'This is no linked account of yours.' };

function unlinkButton(view: View, { id, email }: Identity): Part {
  const form = { action: UNLINK, fields: [IDENTITY_ID], button: 'Unlink', isQuiet: true, about: email } as const;
  return formOf(form, { ...view, values: { identity_id: id } });
}

const unlinkBody = Type.Object({ identity_id: uuid('The linked account') });

export const unlinkForm: FormSpec<typeof unlinkBody> = {
  path: UNLINK,
  operation: 'submitUnlinkCompany',
  summary: 'Unlink an account at a company',
  page: companiesPage,
  fields: [IDENTITY_ID],
  body: unlinkBody,
  words: { LAST_SIGN_IN: 'This is your only way to sign in. Link another account first' },
  submit: ({ identity_id }, visit) => {
    unlinkIdentity(visit.platform, userOf(visit), identity_id);
    return pathTo(COMPANIES, { done: 'company-unlinked' });
  },
};
