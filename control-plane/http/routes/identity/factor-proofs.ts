import { Type } from 'typebox';
import { passkeyRequestOfStep } from '../../../services/identity/sign-in/begin-second-step.js';
import { passkeyRequestOfProof, prove } from '../../../services/identity/sign-in/prove.js';
import { completeSignIn } from '../../../services/identity/sign-in/complete-second-step.js';
import { requirementOf, setRequirement } from '../../../services/identity/factors/factor-requirement.js';
import { sessionOrigin } from '../../access/client.js';
import { ACCOUNT, ADMIN, READ_MONEY, PUBLIC, accountOf, callerOf, sessionOf } from '../../access/policy.js';
import { body, flag, iso, isoOrNull, nullable, optional, timestamp } from '../../schema/schemas.js';
import { Session, presentPassword, sessionView } from './accounts.js';
import { PasskeyOptions, factorAnswer, factorIn, factorToken } from './factor-models.js';
import type { Routes } from '../routes.js';

const Requirement = Type.Object(
  {
    required: flag('Whether members need a second factor'),
    since: nullable(timestamp('Since when; null: they do not')),
  },
  { title: 'FactorRequirement' },
);

/** Routes with which a user gives a second factor: at the sign-in, and to prove again who it is. */
export const factorProofRoutes: Routes = (app, platform) => {
  app.post(
    '/v1/auth/second-factor',
    {
      config: {
        servedOnFullDisk: true,
        policy: PUBLIC,
        guessable: 'per address',
        refusals: ['FACTOR_INVALID', 'FACTOR_TOKEN_INVALID', 'PASSKEYS_OFF'],
      },
      schema: {
        operationId: 'sendSecondFactor',
        summary: 'Open a session with a second factor, after the password',
        description:
          'For sign-ins that were answered with SECOND_FACTOR_REQUIRED. Give one of `code`, `recovery_code` and `passkey`. A code works once. After five wrong answers, or ten minutes, sign in again.',
        body: body({ factor_token: factorToken, ...factorAnswer }),
        response: { 200: Session },
      },
    },
    async (request) => {
      const { factor_token, ...answer } = request.body;
      return sessionView(await completeSignIn(platform, factor_token, factorIn(answer), sessionOrigin(request)));
    },
  );

  app.post(
    '/v1/auth/second-factor/passkey',
    {
      config: {
        servedOnFullDisk: true,
        policy: PUBLIC,
        guessable: 'per address',
        refusals: ['FACTOR_NOT_FOUND', 'FACTOR_TOKEN_INVALID', 'PASSKEYS_OFF'],
      },
      schema: {
        operationId: 'getPasskeyOptions',
        summary: 'Get what to ask a passkey with at the sign-in',
        body: body({ factor_token: factorToken }),
        response: { 200: PasskeyOptions },
      },
    },
    (request) => ({ options: passkeyRequestOfStep(platform, request.body.factor_token) }),
  );

  app.post(
    '/v1/me/proof',
    {
      config: {
        servedOnFullDisk: true,
        policy: ACCOUNT,
        guessable: true,
        refusals: ['FACTOR_INVALID', 'INVALID_CREDENTIALS', 'PASSKEYS_OFF', 'PASSWORD_OFF', 'SECOND_FACTOR_REQUIRED'],
      },
      schema: {
        operationId: 'confirmIdentity',
        summary: 'Prove again who uses this session',
        description:
          'Dangerous acts need a proof that is at most 15 minutes old; a sign-in is one. Give the password, and one of `code`, `recovery_code` and `passkey` if you have a second factor. A passkey is enough alone.',
        body: body(optional({ password: presentPassword, ...factorAnswer })),
        response: { 200: Type.Object({ proven_until: timestamp('Until when the proof is fresh') }) },
      },
    },
    async (request) => {
      const { password, ...answer } = request.body;
      const given = { ...factorIn(answer), ...(password === undefined ? {} : { password }) };
      const { provenUntil } = await prove(platform, accountOf(request), given);
      return { proven_until: iso(provenUntil) };
    },
  );

  app.post(
    '/v1/me/proof/passkey',
    {
      config: { policy: ACCOUNT, servedOnFullDisk: true, refusals: ['FACTOR_NOT_FOUND', 'PASSKEYS_OFF'] },
      schema: {
        operationId: 'getPasskeyProofOptions',
        summary: 'Get what to ask a passkey with for a proof',
        response: { 200: PasskeyOptions },
      },
    },
    (request) => ({ options: passkeyRequestOfProof(platform, accountOf(request)) }),
  );
};

/** Routes with which an organization demands a second factor of its members. */
export const factorRequirementRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/orgs/current/second-factor',
    {
      config: { policy: READ_MONEY },
      schema: {
        operationId: 'getFactorRequirement',
        summary: 'Get whether the active organization demands a second factor of its members',
        response: { 200: Requirement },
      },
    },
    (request) => requirementView(requirementOf(platform, callerOf(request))),
  );

  app.put(
    '/v1/orgs/current/second-factor',
    {
      config: { policy: ADMIN, refusals: ['PROOF_REQUIRED', 'SECOND_FACTOR_REQUIRED'] },
      schema: {
        operationId: 'changeFactorRequirement',
        summary: 'Demand a second factor of the members of the active organization, or end that',
        description:
          'You must have given a second factor yourself in this session. Sessions of members that have given none get SECOND_FACTOR_REQUIRED on everything of this organization at once; their own accounts stay open to them. API keys go on.',
        body: body({ required: flag('Whether members need a second factor') }),
        response: { 200: Requirement },
      },
    },
    (request) => requirementView(setRequirement(platform, sessionOf(request), request.body.required)),
  );
};

function requirementView(since: number | null) {
  return { required: since !== null, since: isoOrNull(since) };
}
