import { Type } from 'typebox';
import { addPasskey, beginPasskey, beginTotp, confirmTotp } from '../../../services/identity/factors/enrol-factor.js';
import { cancelOwnRemoval } from '../../../services/identity/factors/factor-removals.js';
import {
  describeFactors,
  listFactors,
  removeFactor,
  renewRecoveryCodes,
} from '../../../services/identity/factors/second-factors.js';
import { ACCOUNT, accountOf } from '../../access/policy.js';
import { body, integer, iso, list, nullable, optional, text, timestamp, uuid } from '../../schema/schemas.js';
import {
  AddedSecondFactor,
  PasskeyOptions,
  RecoveryCodes,
  SecondFactor,
  addedView,
  factorName,
  factorView,
  passkeyIn,
  passkeyText,
  totpCode,
} from './factor-models.js';
import { NoContent, PageQuery, idOf, type Routes } from '../routes.js';
import { answerList } from '../whole-list.js';

const Enrolment = Type.Object(
  {
    id: uuid('What to confirm it with'),
    secret: text('The shared secret in base32, to type it into the app; shown only here'),
    uri: text('The same as an `otpauth://` address, to show it as a QR code'),
    expires_at: timestamp('Until when it can be confirmed'),
  },
  { title: 'TotpEnrolment' },
);

const Removal = Type.Object(
  {
    reason: text('The reason that the operator gives'),
    asked_at: timestamp('When an operator has asked for it'),
    effective_at: timestamp('When all second factors are removed, and all sessions end'),
  },
  { description: 'The removal of all your second factors that an operator has asked for; null: none' },
);

const Factors = Type.Object({
  items: list(SecondFactor, 'The page; the whole list where neither `limit` nor `cursor` was given'),
  ...optional({
    next_cursor: nullable(text('The `cursor` of the next page; null on the last; absent where no page was asked for')),
  }),
  recovery_codes_left: integer('How many recovery codes were not used'),
  removal: nullable(Removal),
});

/** Routes for the second factors of the signed-in user. */
export const secondFactorRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/me/second-factors',
    {
      config: { policy: ACCOUNT },
      schema: {
        operationId: 'listSecondFactors',
        summary: 'List your second factors, newest first',
        querystring: PageQuery,
        response: { 200: Factors },
      },
    },
    (request, reply) => {
      const caller = accountOf(request);
      const { codesLeft, removal } = describeFactors(platform, caller);
      const answer = answerList(reply, request.query, (query) => listFactors(platform, caller, query), factorView);
      return { ...answer, recovery_codes_left: codesLeft, removal: removal ? removalView(removal) : null };
    },
  );

  app.delete(
    '/v1/me/second-factors/:id',
    {
      config: { policy: ACCOUNT, refusals: ['FACTOR_NOT_FOUND', 'PROOF_REQUIRED'] },
      schema: {
        operationId: 'removeSecondFactor',
        summary: 'Remove a second factor',
        description: 'With the last one go the recovery codes. You are told by mail.',
        params: idOf('second factor'),
        response: { 204: NoContent },
      },
    },
    (request, reply) => {
      removeFactor(platform, accountOf(request), request.params.id);
      void reply.code(204);
      return null;
    },
  );

  app.post(
    '/v1/me/recovery-codes',
    {
      config: { policy: ACCOUNT, refusals: ['FACTOR_NOT_FOUND', 'PROOF_REQUIRED'] },
      schema: {
        operationId: 'replaceRecoveryCodes',
        summary: 'Make new recovery codes',
        description: 'Those before work no more.',
        response: { 201: Type.Object({ recovery_codes: RecoveryCodes }) },
      },
    },
    (request, reply) => {
      void reply.code(201);
      return { recovery_codes: renewRecoveryCodes(platform, accountOf(request)) };
    },
  );

  app.delete(
    '/v1/me/second-factor-removal',
    {
      config: { policy: ACCOUNT },
      schema: {
        operationId: 'cancelOwnFactorRemoval',
        summary: 'Cancel the removal of your second factors that an operator has asked for',
        response: { 204: NoContent },
      },
    },
    (request, reply) => {
      cancelOwnRemoval(platform, accountOf(request));
      void reply.code(204);
      return null;
    },
  );
};

/** Routes with which the signed-in user adds a second factor. */
export const factorEnrolmentRoutes: Routes = (app, platform) => {
  app.post(
    '/v1/me/second-factors/totp',
    {
      config: { policy: ACCOUNT, refusals: ['PROOF_REQUIRED'] },
      schema: {
        operationId: 'startTotp',
        summary: 'Begin to add an authenticator app',
        description: 'Show `uri` as a QR code, and confirm within ten minutes with the code that the app shows.',
        response: { 201: Enrolment },
      },
    },
    (request, reply) => {
      const { id, secret, uri, expiresAt } = beginTotp(platform, accountOf(request));
      void reply.code(201);
      return { id, secret, uri, expires_at: iso(expiresAt) };
    },
  );

  app.post(
    '/v1/me/second-factors/totp/confirm',
    {
      config: {
        policy: ACCOUNT,
        guessable: true,
        refusals: ['FACTOR_INVALID', 'FACTOR_TOKEN_INVALID', 'LIMIT_REACHED', 'PROOF_REQUIRED'],
      },
      schema: {
        operationId: 'confirmTotp',
        summary: 'Add an authenticator app that shows the right code',
        description:
          'From now on the sign-in asks for a second factor. With the first factor come ten recovery codes, and other sessions of yours have to prove again who uses them.',
        body: body({ id: uuid('The id of the enrolment'), code: totpCode, name: factorName }),
        response: { 201: AddedSecondFactor },
      },
    },
    (request, reply) => {
      void reply.code(201);
      return addedView(confirmTotp(platform, accountOf(request), request.body));
    },
  );

  app.post(
    '/v1/me/second-factors/passkeys/options',
    {
      config: { policy: ACCOUNT, refusals: ['PASSKEYS_OFF', 'PROOF_REQUIRED'] },
      schema: {
        operationId: 'startPasskey',
        summary: 'Begin to add a passkey',
        response: { 200: PasskeyOptions },
      },
    },
    (request) => ({ options: beginPasskey(platform, accountOf(request)) }),
  );

  app.post(
    '/v1/me/second-factors/passkeys',
    {
      config: { policy: ACCOUNT, refusals: ['FACTOR_INVALID', 'LIMIT_REACHED', 'PASSKEYS_OFF', 'PROOF_REQUIRED'] },
      schema: {
        operationId: 'addPasskey',
        summary: 'Add a passkey that the browser has made',
        description: 'It must verify its user, with a finger or a PIN for example. The rest is as with an app.',
        body: body({ passkey: passkeyText, name: factorName }),
        response: { 201: AddedSecondFactor },
      },
    },
    async (request, reply) => {
      const { passkey, name } = request.body;
      const added = await addPasskey(platform, accountOf(request), { passkey: passkeyIn(passkey), name });
      void reply.code(201);
      return addedView(added);
    },
  );
};

function removalView({ reason, asked_at, effective_at }: { reason: string; asked_at: number; effective_at: number }) {
  return { reason, asked_at: iso(asked_at), effective_at: iso(effective_at) };
}
