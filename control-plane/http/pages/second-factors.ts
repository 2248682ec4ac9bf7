import { Type } from 'typebox';
import { relyingPartyAt } from '../../domain/identity/relying-party.js';
import {
  addPasskey,
  beginPasskey,
  beginTotp,
  confirmTotp,
  findTotp,
} from '../../services/identity/factors/enrol-factor.js';
import { cancelOwnRemoval } from '../../services/identity/factors/factor-removals.js';
import {
  describeFactors,
  listFactors,
  removeFactor,
  renewRecoveryCodes,
  type SecondFactor,
} from '../../services/identity/factors/second-factors.js';
import { factorName, passkeyIn, passkeyText, totpCode } from '../routes/identity/factor-models.js';
import { uuid } from '../schema/schemas.js';
import { timeOf, userOf } from './account.js';
import { formOf, type Field } from './forms.js';
import { html, type Part } from './html.js';
import type { Page } from './layout.js';
import { noticeOf } from './notices.js';
import { PASSKEY, passkeyForm } from './passkey-form.js';
import { pathTo, type FormSpec, type PageSpec, type View } from './pages.js';
import { qrCode } from './qr-code.js';
import { HOME, SECOND_FACTORS } from './sign-in.js';

const REMOVE = `${SECOND_FACTORS}/remove`;
const RENEW = `${SECOND_FACTORS}/recovery-codes`;
const CANCEL = `${SECOND_FACTORS}/cancel-removal`;
const TOTP = `${SECOND_FACTORS}/totp`;
const PASSKEYS = `${SECOND_FACTORS}/passkey`;
/** No user has more. */
const ALL_FACTORS = 500;

const KIND_WORDS = { totp: 'Authenticator app', passkey: 'Passkey' } as const;

export const factorsPage: PageSpec = {
  path: SECOND_FACTORS,
  operation: 'showSecondFactors',
  summary: 'The page of the second factors',
  needs: 'session',
  reads: ['done'],
  render: (view) => {
    const caller = userOf(view);
    const { items } = listFactors(view.platform, caller, { limit: ALL_FACTORS });
    const { codesLeft, removal } = describeFactors(view.platform, caller);
    return {
      title: 'Second factors',
      content: [
        noticeOf(view),
        removal && removalNotice(view, removal),
        items.length === 0
          ? html`<p>You have none: your password alone opens your account.</p>`
          : html`<p>The sign-in asks for one of them after the password.</p>
              <ul class="sessions">
                ${items.map((factor) => html`<li>${describe(factor)} ${removeButton(view, factor)}</li>`)}
              </ul>`,
        html`<p><a href="${TOTP}">Add an authenticator app</a></p>`,
        relyingPartyAt(view.platform.publicUrl) !== null && html`<p><a href="${PASSKEYS}">Add a passkey</a></p>`,
        items.length > 0 && recoveryCodesOf(view, codesLeft),
        html`<p><a href="${HOME}">Back to your account</a></p>`,
      ],
    };
  },
};

function describe({ kind, name, created_at, last_used_at }: SecondFactor): Part {
  return html`<strong>${name}</strong> (${KIND_WORDS[kind]}). Added
    ${timeOf(created_at)}${last_used_at !== null && html`, last used ${timeOf(last_used_at)}`}.`;
}

const FACTOR_ID: Field = { name: 'factor_id', label: null, wrong: 'This is no second factor of yours.' };

function removeButton(view: View, { id, name }: SecondFactor): Part {
  const form = { action: REMOVE, fields: [FACTOR_ID], button: 'Remove', isQuiet: true, about: name } as const;
  return formOf(form, { ...view, values: { factor_id: id } });
}

function recoveryCodesOf(view: View, left: number): Part {
  return [
    html`<h2>Recovery codes</h2>
      <p>You have ${left} left. Each opens your account once instead of another second factor.</p>`,
    formOf({ action: RENEW, fields: [], button: 'Make ten new ones', isQuiet: true }, view),
  ];
}

function removalNotice(view: View, { reason, effective_at }: { reason: string; effective_at: number }): Part {
  return html`<div class="problem">
    <p>
      At ${timeOf(effective_at)}, an operator will remove all your second factors and end all your sessions. The reason
      that the operator gives: ${reason}.
    </p>
    ${formOf({ action: CANCEL, fields: [], button: 'Cancel that' }, view)}
  </div>`;
}

const noFields = Type.Object({});
const removeBody = Type.Object({ factor_id: uuid('The factor') });

export const removeFactorForm: FormSpec<typeof removeBody> = {
  path: REMOVE,
  operation: 'submitRemoveFactor',
  summary: 'Remove a second factor',
  page: factorsPage,
  fields: [FACTOR_ID],
  body: removeBody,
  words: { FACTOR_NOT_FOUND: 'This second factor was removed already' },
  submit: ({ factor_id }, visit) => {
    removeFactor(visit.platform, userOf(visit), factor_id);
    return pathTo(SECOND_FACTORS, { done: 'factor-removed' });
  },
};

export const renewCodesForm: FormSpec<typeof noFields> = {
  path: RENEW,
  operation: 'submitRecoveryCodes',
  summary: 'Make new recovery codes',
  page: factorsPage,
  fields: [],
  body: noFields,
  submit: (_given, visit) => codesPage('', renewRecoveryCodes(visit.platform, userOf(visit))),
};

export const cancelRemovalForm: FormSpec<typeof noFields> = {
  path: CANCEL,
  operation: 'submitCancelRemoval',
  summary: 'Cancel the removal of the second factors',
  page: factorsPage,
  fields: [],
  body: noFields,
  submit: (_given, visit) => {
    cancelOwnRemoval(visit.platform, userOf(visit));
    return pathTo(SECOND_FACTORS, { done: 'removal-cancelled' });
  },
};

/** Returns the page with recovery codes: the only answer that has them. */
function codesPage(done: string, codes: readonly string[]): Page {
  return {
    title: 'Your recovery codes',
    content: [
      done !== '' && html`<p class="notice" role="status">${done}</p>`,
      html`<p>Keep them where you find them without your telephone. Each works once. They are not shown again.</p>
        <ul class="codes">
          ${codes.map((code) => html`<li><code>${code}</code></li>`)}
        </ul>
        <p><a href="${SECOND_FACTORS}">I have kept them</a></p>`,
    ],
  };
}

function afterAdding(recoveryCodes: readonly string[] | null): string | Page {
  if (recoveryCodes) return codesPage('The second factor is added.', recoveryCodes);
  return pathTo(SECOND_FACTORS, { done: 'factor-added' });
}

const NAME: Field = {
  name: 'name',
  label: 'Name',
  hint: 'Such as the name of the device.',
  wrong: 'Give a name of at most 64 characters.',
};
const TOTP_CODE: Field = {
  name: 'code',
  label: 'The six digits that the app shows',
  autocomplete: 'one-time-code',
  wrong: 'Give the six digits that the app shows now.',
};
const ENROLMENT: Field = { name: 'id', label: null, wrong: 'Open the page again.' };
const TOTP_FIELDS = [TOTP_CODE, NAME, ENROLMENT];

export const totpPage: PageSpec = {
  path: TOTP,
  operation: 'showAddTotp',
  summary: 'The page to add an authenticator app',
  needs: 'proof',
  render: (view) => {
    const caller = userOf(view);
    const known = view.values['id'];
    const begun = known === undefined ? undefined : findTotp(view.platform, caller, known);
    const { id, secret, uri } = begun ?? beginTotp(view.platform, caller);
    return {
      title: 'Add an authenticator app',
      content: [
        html`<p>Scan this with the app, or type the secret into it.</p>
          ${qrCode(uri)}
          <p>Secret: <code>${(secret.match(/.{4}/g) ?? []).join(' ')}</code></p>`,
        formOf({ action: TOTP, fields: TOTP_FIELDS, button: 'Add it' }, { ...view, values: { ...view.values, id } }),
        html`<p><a href="${SECOND_FACTORS}">Back to your second factors</a></p>`,
      ],
    };
  },
};

const totpBody = Type.Object({ code: totpCode, name: factorName, id: uuid('The enrolment') });

export const totpForm: FormSpec<typeof totpBody> = {
  path: TOTP,
  operation: 'submitAddTotp',
  summary: 'Add an authenticator app',
  page: totpPage,
  fields: TOTP_FIELDS,
  body: totpBody,
  guessable: true,
  words: {
    FACTOR_INVALID: 'This code is wrong. Give the one that the app shows now; the clock of the device must be right',
    FACTOR_TOKEN_INVALID: 'This took too long, or there were five wrong codes. Scan the new code with the app',
  },
  submit: (given, visit) => afterAdding(confirmTotp(visit.platform, userOf(visit), given).recoveryCodes),
};

export const passkeyPage: PageSpec = {
  path: PASSKEYS,
  operation: 'showAddPasskey',
  summary: 'The page to add a passkey',
  needs: 'proof',
  usesScript: true,
  render: (view) => {
    const options = beginPasskey(view.platform, userOf(view));
    const form = { action: PASSKEYS, ceremony: 'create' as const, options, fields: [NAME], button: 'Add a passkey' };
    return {
      title: 'Add a passkey',
      content: [
        html`<p>A passkey is kept by this device, a telephone, a security key or a password manager.</p>`,
        passkeyForm(form, view),
        html`<p><a href="${SECOND_FACTORS}">Back to your second factors</a></p>`,
      ],
    };
  },
};

const passkeyBody = Type.Object({ passkey: passkeyText, name: factorName });

export const addPasskeyForm: FormSpec<typeof passkeyBody> = {
  path: PASSKEYS,
  operation: 'submitAddPasskey',
  summary: 'Add a passkey',
  page: passkeyPage,
  fields: [NAME, PASSKEY],
  body: passkeyBody,
  words: { FACTOR_INVALID: 'This passkey was not accepted. Try again' },
  submit: async ({ passkey, name }, visit) => {
    const given = { passkey: passkeyIn(passkey), name };
    return afterAdding((await addPasskey(visit.platform, userOf(visit), given)).recoveryCodes);
  },
};
