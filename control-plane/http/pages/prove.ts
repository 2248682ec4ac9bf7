import { Type } from 'typebox';
import type { AccountCaller } from '../../domain/caller.js';
import { relyingPartyAt } from '../../domain/identity/relying-party.js';
import { listIdentities } from '../../services/identity/companies/identities.js';
import { LIMITS } from '../../services/system/row-limits.js';
import { passkeyRequestOfProof, prove } from '../../services/identity/sign-in/prove.js';
import { factorKinds } from '../../services/identity/factors/second-factors.js';
import { presentPassword } from '../routes/identity/accounts.js';
import { passkeyIn, passkeyText } from '../routes/identity/factor-models.js';
import { optional, text } from '../schema/schemas.js';
import { startOf } from './company-links.js';
import { formOf, type Field } from './forms.js';
import { html, type Part } from './html.js';
import { PASSKEY, passkeyForm } from './passkey-form.js';
import { PROVE, type FormSpec, type PageSpec, type View } from './pages.js';
import { MOST_CHARS, ownPath } from './return-to.js';
import { CODE, codeText, typedFactor } from './second-step.js';
import { HOME, PASSWORD_OFF } from './sign-in.js';
import { userOf } from './account.js';

const BY_PASSKEY = `${PROVE}/passkey`;
const RETURN_TO: Field = { name: 'return_to', label: null, wrong: 'The address to return to is too long.' };
const returnTo = optional({ return_to: text('Where to go then', { maxLength: MOST_CHARS }) });
const PASSWORD: Field = {
  name: 'password',
  label: 'Password',
  type: 'password',
  autocomplete: 'current-password',
  wrong: 'Give your password.',
};

export const provePage: PageSpec = {
  path: PROVE,
  operation: 'showProof',
  summary: 'The page that asks again who uses this session',
  needs: 'session',
  reads: ['return_to'],
  usesScript: true,
  render: (view) => {
    const caller = userOf(view);
    const kinds = factorKinds(view.platform, caller);
    const filled = { ...view, values: { return_to: ownPath(view.values['return_to']) ?? '' } };
    const isByPasskey = kinds.includes('passkey') && relyingPartyAt(view.platform.publicUrl) !== null;
    const get = () => ({ ceremony: 'get' as const, options: passkeyRequestOfProof(view.platform, caller) });
    const fields = kinds.length > 0 ? [PASSWORD, CODE, RETURN_TO] : [PASSWORD, RETURN_TO];
    return {
      title: 'Is it you?',
      content: [
        html`<p>What you want to do needs a proof that is at most 15 minutes old.</p>`,
        isByPasskey &&
          passkeyForm({ action: BY_PASSKEY, ...get(), fields: [RETURN_TO], button: 'Use a passkey' }, filled),
        formOf({ action: PROVE, fields, button: 'Go on', username: caller.email }, filled),
        companiesToProveWith(filled, caller),
        html`<p><a href="${HOME}">Back to your account</a></p>`,
      ],
    };
  },
};

/** Returns links to the sign-ins of the companies where the user has linked accounts: to sign in again is a proof, too. */
function companiesToProveWith({ platform, values }: View, caller: AccountCaller): Part {
  const { items } = listIdentities(platform, caller, { limit: LIMITS.identities });
  return items.map(({ issuer_id, issuer_name }) => {
    if (issuer_id === null) return null;
    const start = startOf(issuer_id, { again: 'yes', return_to: ownPath(values['return_to']) });
    return html`<p><a href="${start}">Sign in again with ${issuer_name ?? ''}</a></p>`;
  });
}

const passwordBody = Type.Object({ password: presentPassword, ...optional({ code: codeText }), ...returnTo });

export const proveForm: FormSpec<typeof passwordBody> = {
  servedOnFullDisk: true,
  path: PROVE,
  operation: 'submitProof',
  summary: 'Prove again who uses this session, with the password',
  page: provePage,
  fields: [PASSWORD, CODE, RETURN_TO],
  body: passwordBody,
  guessable: true,
  words: {
    INVALID_CREDENTIALS: 'The password is wrong',
    PASSWORD_OFF,
    FACTOR_INVALID: 'This code is wrong, or it was used already. Wait for the next one, or use another factor',
    SECOND_FACTOR_REQUIRED: 'Give the code, too',
  },
  submit: async ({ password, code, return_to }, visit) => {
    await prove(visit.platform, userOf(visit), { password, ...(code === undefined ? {} : typedFactor(code)) });
    return ownPath(return_to) ?? HOME;
  },
};

const passkeyBody = Type.Object({ passkey: passkeyText, ...returnTo });

export const passkeyProofForm: FormSpec<typeof passkeyBody> = {
  servedOnFullDisk: true,
  path: BY_PASSKEY,
  operation: 'submitPasskeyProof',
  summary: 'Prove again who uses this session, with a passkey',
  page: provePage,
  fields: [PASSKEY, RETURN_TO],
  body: passkeyBody,
  guessable: true,
  words: { FACTOR_INVALID: 'This passkey was not accepted. Try again, or use another factor' },
  submit: async ({ passkey, return_to }, visit) => {
    await prove(visit.platform, userOf(visit), { passkey: passkeyIn(passkey) });
    return ownPath(return_to) ?? HOME;
  },
};
