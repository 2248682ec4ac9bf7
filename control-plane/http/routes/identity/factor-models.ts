import { Type } from 'typebox';
import { Refusal } from '../../../domain/refusal.js';
import type { FactorAnswer } from '../../../services/identity/factors/give-factor.js';
import type { PasskeyAnswer } from '../../../services/identity/factors/passkeys.js';
import type { SecondFactor as FactorDetails, AddedFactor } from '../../../services/identity/factors/second-factors.js';
import {
  choice,
  formed,
  iso,
  isoOrNull,
  list,
  meaning,
  nameOf,
  nullable,
  optional,
  text,
  timestamp,
  uuid,
} from '../../schema/schemas.js';

export const factorToken = text('The `factor_token` of the sign-in', { maxLength: 128 });
export const factorName = nameOf('A name that tells this factor from others, such as the name of the device', 64);
export const totpCode = formed(
  'The six digits that the authenticator app shows now',
  '^[0-9]{6}$',
  'be the six digits that the app shows',
);
export const recoveryCode = text('One of the recovery codes; each works once', { maxLength: 64 });
/** What browsers answer has fields that future ones add, so it comes as text. */
export const passkeyText = text(
  'What the browser has answered, as JSON: `JSON.stringify(credential)` of a `PublicKeyCredential`',
  { maxLength: 12_000 },
);
/** A second factor, as its user gives it. */
export const factorAnswer = optional({ code: totpCode, recovery_code: recoveryCode, passkey: passkeyText });

/** Returns the answer of a passkey. Refuses with FACTOR_INVALID what is none. */
export function passkeyIn(json: string): PasskeyAnswer {
  try {
    const answer: unknown = JSON.parse(json);
    if (typeof answer === 'object' && answer !== null && !Array.isArray(answer)) return answer as PasskeyAnswer;
  } catch {
    // No browser has sent it.
  }
  throw new Refusal('FACTOR_INVALID', 'the passkey has given no answer; try again');
}

/** Returns a second factor as the use cases take it. Refuses with FACTOR_INVALID. */
export function factorIn({ passkey, ...codes }: SentFactor): FactorAnswer {
  return passkey === undefined ? codes : { passkey: passkeyIn(passkey) };
}

interface SentFactor {
  code?: string;
  recovery_code?: string;
  passkey?: string;
}

export const PasskeyOptions = Type.Object(
  {
    options: Type.Object(
      {},
      {
        description:
          'For the browser: `PublicKeyCredential.parseRequestOptionsFromJSON` or `parseCreationOptionsFromJSON`, by WebAuthn. The challenge works once, for ten minutes',
        additionalProperties: true,
      },
    ),
  },
  { title: 'PasskeyOptions' },
);

export const SecondFactor = Type.Object(
  {
    id: uuid('The id of the factor'),
    kind: choice(['totp', 'passkey'], '`totp`: an authenticator app; `passkey`: a passkey or security key'),
    name: text('The name that its user has given it'),
    created_at: timestamp('When it was added'),
    last_used_at: nullable(timestamp('When it was last used; null: never')),
  },
  { title: 'SecondFactor' },
);

export const RecoveryCodes = list(text('A recovery code'), 'Ten codes, shown only here; each works once');

export const AddedSecondFactor = Type.Object(
  {
    factor: meaning(SecondFactor, 'The factor'),
    recovery_codes: nullable(RecoveryCodes),
  },
  { title: 'AddedSecondFactor' },
);

export function factorView({ id, kind, name, created_at, last_used_at }: FactorDetails) {
  return { id, kind, name, created_at: iso(created_at), last_used_at: isoOrNull(last_used_at) };
}

export function addedView({ factor, recoveryCodes }: AddedFactor) {
  return { factor: factorView(factor), recovery_codes: recoveryCodes };
}
