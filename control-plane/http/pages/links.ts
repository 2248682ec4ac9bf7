import { Type } from 'typebox';
import { confirmSignUp } from '../../services/identity/sign-in/confirm-sign-up.js';
import { requestPasswordReset, resetPassword } from '../../services/identity/sign-in/password-reset.js';
import { clientNetwork, sessionOrigin } from '../access/client.js';
import { emailOf, linkToken, newPassword, presentPassword } from '../routes/identity/accounts.js';
import { choice, optional } from '../schema/schemas.js';
import { formOf, type Field } from './forms.js';
import { html } from './html.js';
import { noticeOf } from './notices.js';
import { pathTo, SIGN_IN, type FormSpec, type PageSpec } from './pages.js';
import { EMAIL, NEW_PASSWORD_HINT, enter } from './sign-in.js';

const FORGOT = '/forgot-password';
const RESET = '/reset-password';
const CONFIRM = '/confirm-address';

const TOKEN: Field = { name: 'token', label: null, wrong: 'Open the link of the mail again.' };
const INVALID = 'This link is wrong, or it was used or has expired. Ask for a new one';

export const forgotPage: PageSpec = {
  path: FORGOT,
  operation: 'showForgotPassword',
  summary: 'The page to ask for a new password',
  needs: 'nobody',
  reads: ['done'],
  render: (view) => ({
    title: 'Forgot your password?',
    content: [
      noticeOf(view),
      view.platform.mail
        ? formOf({ action: FORGOT, fields: [EMAIL], button: 'Send me a link' }, view)
        : html`<p>This control plane sends no mail: ask its operator for a link to a new password.</p>`,
      html`<p><a href="${SIGN_IN}">Back to the sign-in</a></p>`,
    ],
  }),
};

const forgotBody = Type.Object({ email: emailOf('the user') });

export const forgotForm: FormSpec<typeof forgotBody> = {
  path: FORGOT,
  operation: 'submitForgotPassword',
  summary: 'Ask for a link to a new password',
  page: forgotPage,
  fields: [EMAIL],
  body: forgotBody,
  guessable: 'per address',
  words: {
    LIMIT_REACHED: 'Three links in an hour are the limit for an address. Use the newest one, or try again later',
  },
  submit: ({ email }, { platform, request }) => {
    requestPasswordReset(platform, email, clientNetwork(request));
    return pathTo(FORGOT, { done: 'link-mailed' });
  },
};

const RESET_FIELDS: readonly Field[] = [
  {
    name: 'new_password',
    label: 'New password',
    type: 'password',
    autocomplete: 'new-password',
    hint: NEW_PASSWORD_HINT,
    wrong: 'Give a password of 12 to 256 characters.',
  },
  {
    name: 'revoke_api_keys',
    label: 'Revoke all API keys that I have created',
    type: 'checkbox',
    hint: 'Do so if somebody else may have known the old password.',
    wrong: 'Choose yes or no.',
    isOptional: true,
  },
  TOKEN,
];

export const resetPage: PageSpec = {
  path: RESET,
  operation: 'showResetPassword',
  summary: 'The page to set a new password by a link',
  needs: 'nobody',
  reads: ['token'],
  render: (view) => ({
    title: 'Set a new password',
    content: [
      html`<p>All your sessions end. Sign in with the new password then.</p>`,
      formOf({ action: RESET, fields: RESET_FIELDS, button: 'Set the password' }, view),
      html`<p><a href="${FORGOT}">Ask for a new link</a></p>`,
    ],
  }),
};

const resetBody = Type.Object({
  token: linkToken,
  new_password: newPassword,
  ...optional({ revoke_api_keys: choice(['yes'], 'Whether to revoke the API keys') }),
});

export const resetForm: FormSpec<typeof resetBody> = {
  path: RESET,
  operation: 'submitResetPassword',
  summary: 'Set a new password by a link',
  page: resetPage,
  fields: RESET_FIELDS,
  body: resetBody,
  guessable: 'per address',
  words: { LINK_INVALID: INVALID },
  submit: async ({ token, new_password, revoke_api_keys }, { platform, request }) => {
    const given = { token, new_password, revoke_api_keys: revoke_api_keys !== undefined };
    await resetPassword(platform, given, clientNetwork(request));
    return pathTo(SIGN_IN, { done: 'password-reset' });
  },
};

const CONFIRM_FIELDS: readonly Field[] = [
  {
    name: 'password',
    label: 'The password that you have chosen',
    type: 'password',
    autocomplete: 'current-password',
    wrong: 'Give the password of your sign-up.',
  },
  TOKEN,
];

export const confirmPage: PageSpec = {
  path: CONFIRM,
  operation: 'showConfirmAddress',
  summary: 'The page to confirm the e-mail address of a new account',
  needs: 'nobody',
  reads: ['token'],
  render: (view) => ({
    title: 'Confirm your e-mail address',
    content: [formOf({ action: CONFIRM, fields: CONFIRM_FIELDS, button: 'Create my account' }, view)],
  }),
};

const confirmBody = Type.Object({ token: linkToken, password: presentPassword });

export const confirmForm: FormSpec<typeof confirmBody> = {
  path: CONFIRM,
  operation: 'submitConfirmAddress',
  summary: 'Create the account of a sign-up and open a session for this browser',
  page: confirmPage,
  fields: CONFIRM_FIELDS,
  body: confirmBody,
  guessable: 'per address',
  words: { LINK_INVALID: INVALID, INVALID_CREDENTIALS: 'This is not the password of the sign-up' },
  submit: async (given, visit) => {
    const session = await confirmSignUp(visit.platform, given, sessionOrigin(visit.request));
    return enter(visit, session, undefined);
  },
};
