import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { signIn, signOut, type SignedIn } from '../../services/identity/sign-in/sign-in.js';
import { signUp } from '../../services/identity/sign-in/sign-up.js';
import type { FactorStep } from '../../services/identity/sign-in/begin-second-step.js';
import { sessionOrigin } from '../access/client.js';
import { companyCookie, setFactorCookie, setSessionCookie } from '../access/cookies.js';
import { emailOf, newPassword, presentPassword } from '../routes/identity/accounts.js';
import { nameOf, optional, text } from '../schema/schemas.js';
import { companiesToSignInWith, userBeingLinkedBy } from './company-links.js';
import { formOf, type Field } from './forms.js';
import { html } from './html.js';
import { noticeOf } from './notices.js';
import { pathTo, SIGN_IN, type FormSpec, type PageSpec, type View, type Visit } from './pages.js';
import { MOST_CHARS, ownPath } from './return-to.js';
import { signedIn } from './visitor.js';

const SIGN_UP = '/sign-up';
/** Where to go after a sign-in that leads nowhere else, if there is no console. */
export const HOME = '/account';
const CONSOLE = '/';
export const SECOND_FACTORS = '/account/second-factors';
/** Where a sign-in goes on that needs a second factor. */
export const SECOND_STEP = '/sign-in/second-factor';

export const EMAIL: Field = {
  name: 'email',
  label: 'E-mail address',
  type: 'email',
  autocomplete: 'username',
  wrong: 'Give an e-mail address, such as you@example.com.',
};
export const NEW_PASSWORD_HINT = 'At least 12 characters.';
const RETURN_TO: Field = { name: 'return_to', label: null, wrong: 'The address to return to is too long.' };
const returnTo = optional({ return_to: text('Where to go then', { maxLength: MOST_CHARS }) });

const SIGN_IN_FIELDS: readonly Field[] = [
  EMAIL,
  {
    name: 'password',
    label: 'Password',
    type: 'password',
    autocomplete: 'current-password',
    wrong: 'Give your password.',
  },
  RETURN_TO,
];

export const signInPage: PageSpec = {
  path: SIGN_IN,
  operation: 'showSignIn',
  summary: 'The page to sign in',
  needs: 'nobody',
  reads: ['return_to', 'done'],
  render: (view) => ({
    title: 'Sign in',
    content: [
      noticeOf(view),
      formOf({ action: SIGN_IN, fields: SIGN_IN_FIELDS, button: 'Sign in' }, returning(view)),
      companiesToSignInWith(view),
      html`<p><a href="/forgot-password">Forgot your password?</a></p>`,
      view.platform.signUpMode === 'open' &&
        html`<p>No account yet? <a href="${signUpPath(view.values['return_to'])}">Create one</a>.</p>`,
    ],
  }),
};

/** Leaves out an address to return to that would not be followed, so that its form is not refused for it. */
function returning(view: View): View {
  return { ...view, values: { ...view.values, return_to: ownPath(view.values['return_to']) ?? '' } };
}

function signUpPath(return_to: string | undefined): string {
  return pathTo(SIGN_UP, { return_to: ownPath(return_to) });
}

export const PASSWORD_OFF = 'Your company has switched passwords off: sign in with your company';

const signInBody = Type.Object({ email: emailOf('the user'), password: presentPassword, ...returnTo });

export const signInForm: FormSpec<typeof signInBody> = {
  servedOnFullDisk: true,
  path: SIGN_IN,
  operation: 'submitSignIn',
  summary: 'Open a session for this browser',
  page: signInPage,
  fields: SIGN_IN_FIELDS,
  body: signInBody,
  guessable: true,
  words: { PASSWORD_OFF },
  submit: async ({ email, password, return_to }, visit) => {
    const linking = userBeingLinkedBy(visit.platform, return_to, companyCookie(visit.request));
    const session = await signIn(visit.platform, { email, password }, sessionOrigin(visit.request), linking);
    return proceed(visit, session, return_to);
  },
};

/** Returns where a sign-in goes on: at its second step, or signed in. */
export function proceed(visit: Visit, next: SignedIn | FactorStep, return_to: string | undefined): string {
  if (!('factorToken' in next)) return enter(visit, next, return_to);
  setFactorCookie(visit.reply, next.factorToken);
  return pathTo(SECOND_STEP, { return_to: ownPath(return_to) });
}

/** Hands the session to the browser, instead of one that it had before, and returns where to go. */
export function enter({ platform, request, reply }: Visit, { token }: SignedIn, return_to: string | undefined): string {
  const before = signedIn(platform, request);
  if (before) signOut(platform, before.sessionId);
  setSessionCookie(reply, token);
  return ownPath(return_to) ?? consoleOf(request) ?? HOME;
}

/** Returns where the console begins, if this control plane serves it. */
export function consoleOf({ server }: FastifyRequest): string | undefined {
  return server.hasRoute({ method: 'GET', url: CONSOLE }) ? CONSOLE : undefined;
}

const INVITE: Field = {
  name: 'invite_token',
  label: 'Invitation',
  hint: 'The code that begins with inv_.',
  isOptional: true,
  wrong: 'Give the code of your invitation, which begins with inv_.',
};
const SIGN_UP_FIELDS: readonly Field[] = [
  {
    name: 'name',
    label: 'Your name',
    autocomplete: 'name',
    wrong: 'Give a name of at most 64 characters, without line breaks.',
  },
  EMAIL,
  {
    name: 'password',
    label: 'Password',
    type: 'password',
    autocomplete: 'new-password',
    hint: NEW_PASSWORD_HINT,
    wrong: 'Give a password of 12 to 256 characters.',
  },
  INVITE,
  RETURN_TO,
];

export const signUpPage: PageSpec = {
  path: SIGN_UP,
  operation: 'showSignUp',
  summary: 'The page to create an account',
  needs: 'nobody',
  reads: ['return_to', 'invite_token', 'done'],
  render: (view) => {
    const isAsked = view.platform.signUpMode === 'invitation' || view.values['invite_token'] !== undefined;
    const fields = SIGN_UP_FIELDS.filter((field) => field !== INVITE || isAsked);
    const toSignIn = pathTo(SIGN_IN, { return_to: ownPath(view.values['return_to']) });
    return {
      title: 'Create an account',
      content: [
        noticeOf(view),
        view.platform.signUpMode === 'invitation' &&
          html`<p>New accounts need an invitation for the same e-mail address.</p>`,
        formOf({ action: SIGN_UP, fields, button: 'Create the account' }, returning(view)),
        html`<p>You have an account? <a href="${toSignIn}">Sign in</a>.</p>`,
      ],
    };
  },
};

const signUpBody = Type.Object({
  email: emailOf('the new user'),
  password: newPassword,
  name: nameOf('The name of the user', 64),
  ...optional({ invite_token: text('The token of an invitation', { maxLength: 128 }) }),
  ...returnTo,
});

export const signUpForm: FormSpec<typeof signUpBody> = {
  path: SIGN_UP,
  operation: 'submitSignUp',
  summary: 'Create an account and open a session for this browser',
  page: signUpPage,
  fields: SIGN_UP_FIELDS,
  body: signUpBody,
  guessable: 'per address',
  words: {
    INVITATION_REQUIRED: 'New accounts need an invitation: give its code',
    LIMIT_REACHED: 'Three links in an hour are the limit for an address. Use the newest one, or try again later',
  },
  submit: async ({ return_to, ...account }, visit) => {
    const { invite_token, ...rest } = account;
    const request = { ...rest, ...(invite_token === undefined ? {} : { invite_token }) };
    const session = await signUp(visit.platform, request, sessionOrigin(visit.request));
    return session ? enter(visit, session, return_to) : pathTo(SIGN_UP, { done: 'address-mailed' });
  },
};
