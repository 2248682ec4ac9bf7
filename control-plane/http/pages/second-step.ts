import { Type } from 'typebox';
import { Refusal } from '../../domain/refusal.js';
import { relyingPartyAt } from '../../domain/identity/relying-party.js';
import { findFactorStep, passkeyRequestOfStep } from '../../services/identity/sign-in/begin-second-step.js';
import type { FactorAnswer } from '../../services/identity/factors/give-factor.js';
import { completeSignIn } from '../../services/identity/sign-in/complete-second-step.js';
import { sessionOrigin } from '../access/client.js';
import { clearFactorCookie, factorCookie } from '../access/cookies.js';
import { passkeyIn, passkeyText } from '../routes/identity/factor-models.js';
import { optional, text } from '../schema/schemas.js';
import { formOf, type Field } from './forms.js';
import { html, type Part } from './html.js';
import { PASSKEY, passkeyForm } from './passkey-form.js';
import { SIGN_IN, type FormSpec, type PageSpec, type View, type Visit } from './pages.js';
import { MOST_CHARS, ownPath } from './return-to.js';
import { enter, SECOND_STEP } from './sign-in.js';

const BY_PASSKEY = `${SECOND_STEP}/passkey`;
const RETURN_TO: Field = { name: 'return_to', label: null, wrong: 'The address to return to is too long.' };
const returnTo = optional({ return_to: text('Where to go then', { maxLength: MOST_CHARS }) });

/** Six digits of an app, or a recovery code. */
export const CODE: Field = {
  name: 'code',
  label: 'Code',
  autocomplete: 'one-time-code',
  hint: 'The six digits that your authenticator app shows now, or one of your recovery codes.',
  wrong: 'Give the six digits that your authenticator app shows, or a recovery code.',
};
export const codeText = text('A code of an app or a recovery code', { maxLength: 64 });

/** Returns the factor that somebody has typed: six digits are of an app, everything else is a recovery code. */
export function typedFactor(typed: string): FactorAnswer {
  const code = typed.replace(/\s/g, '');
  return /^\d{6}$/.test(code) ? { code } : { recovery_code: code };
}

export const secondStepPage: PageSpec = {
  path: SECOND_STEP,
  operation: 'showSecondStep',
  summary: 'The page that asks for the second factor at the sign-in',
  needs: 'nobody',
  reads: ['return_to'],
  usesScript: true,
  render: (view) => ({
    title: 'Second factor',
    content: [...formsOf(view), html`<p><a href="${SIGN_IN}">Back to the sign-in</a></p>`],
  }),
};

function formsOf(view: View): Part[] {
  const token = factorCookie(view.request) ?? '';
  const kinds = kindsOfStep(view, token);
  if (!kinds) return [html`<p>This sign-in is over. Sign in again.</p>`];
  const values = { ...view.values, return_to: ownPath(view.values['return_to']) ?? '' };
  const filled = { ...view, values };
  const isByPasskey = kinds.includes('passkey') && relyingPartyAt(view.platform.publicUrl) !== null;
  const get = () => ({ ceremony: 'get' as const, options: passkeyRequestOfStep(view.platform, token) });
  return [
    isByPasskey && passkeyForm({ action: BY_PASSKEY, ...get(), fields: [RETURN_TO], button: 'Use a passkey' }, filled),
    formOf({ action: SECOND_STEP, fields: [CODE, RETURN_TO], button: 'Sign in' }, filled),
    html`<p>
      Without your app, your passkeys and your recovery codes, ask the operator of this control plane to remove your
      second factors. That takes a day.
    </p>`,
  ];
}

function kindsOfStep({ platform }: View, token: string) {
  try {
    return findFactorStep(platform, token).kinds;
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

async function complete(answer: FactorAnswer, visit: Visit, return_to: string | undefined): Promise<string> {
  const token = factorCookie(visit.request) ?? '';
  const signedIn = await completeSignIn(visit.platform, token, answer, sessionOrigin(visit.request));
  clearFactorCookie(visit.reply);
  return enter(visit, signedIn, return_to);
}

const words = {
  FACTOR_INVALID: 'This code is wrong, or it was used already. Wait for the next one, or use another factor',
  FACTOR_TOKEN_INVALID: 'This sign-in is over. Sign in again',
};
const codeBody = Type.Object({ code: codeText, ...returnTo });

export const secondStepForm: FormSpec<typeof codeBody> = {
  servedOnFullDisk: true,
  path: SECOND_STEP,
  operation: 'submitSecondStep',
  summary: 'Open a session for this browser with a code',
  page: secondStepPage,
  fields: [CODE, RETURN_TO],
  body: codeBody,
  guessable: 'per address',
  words,
  submit: ({ code, return_to }, visit) => complete(typedFactor(code), visit, return_to),
};

const passkeyBody = Type.Object({ passkey: passkeyText, ...returnTo });

export const passkeyStepForm: FormSpec<typeof passkeyBody> = {
  servedOnFullDisk: true,
  path: BY_PASSKEY,
  operation: 'submitPasskeyStep',
  summary: 'Open a session for this browser with a passkey',
  page: secondStepPage,
  fields: [PASSKEY, RETURN_TO],
  body: passkeyBody,
  guessable: 'per address',
  words: { ...words, FACTOR_INVALID: 'This passkey was not accepted. Try again, or use another factor' },
  submit: ({ passkey, return_to }, visit) => complete({ passkey: passkeyIn(passkey) }, visit, return_to),
};
