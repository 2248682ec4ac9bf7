import { Type } from 'typebox';
import {
  approveDevice,
  denyDevice,
  typeDeviceCode,
  type DeviceRequest,
} from '../../../services/identity/devices/approve-device.js';
import { openDeviceSession } from '../../../services/identity/devices/open-device-session.js';
import { requestDeviceCode } from '../../../services/identity/devices/request-device-code.js';
import { clientNetwork, sessionOrigin } from '../../access/client.js';
import { ownOrigin } from '../../access/cookies.js';
import { DEVICE_PAGE } from '../../page-paths.js';
import { ACCOUNT, PUBLIC, accountOf } from '../../access/policy.js';
import { body, flag, formed, integer, iso, nullable, text, timestamp, uuid } from '../../schema/schemas.js';
import { Session, sessionView } from './accounts.js';
import { NoContent, idOf, type Routes } from '../routes.js';

/** A name that a stranger has chosen is shown to the person who approves it: it cannot be in another script, or imitate a sentence. */
const sessionName = formed(
  'What the program calls its session, such as `gpurent on laptop`: letters, digits and ` ._@()-`',
  '^[A-Za-z0-9][A-Za-z0-9 ._@()-]*$',
  'have only English letters, digits, spaces and the characters ._@()-, and begin with a letter or digit',
  { minLength: 1, maxLength: 48 },
);

/** What a person types of a code. */
export const userCode = text('The code that the program shows, such as `BCDF-GHJK`', { maxLength: 32 });

const DeviceCode = Type.Object(
  {
    device_code: text('The code of the program itself: keep it secret'),
    user_code: text('The code that a person types at `verification_uri`: eight letters, as `BCDF-GHJK`'),
    verification_uri: text('The page where the person types it; no link has the code in it'),
    expires_in: integer('For how many seconds both codes work'),
    interval: integer('How many seconds to wait between two questions'),
  },
  { title: 'DeviceCode' },
);

const TypedDeviceCode = Type.Object(
  {
    id: uuid('The id with which it is approved or denied'),
    name: text('What the program calls itself; anybody can choose it'),
    device: nullable(text('The program as it has described itself')),
    address: text('The address from which it asks; of an IPv6 address only the first 48 bits'),
    is_same_address: flag('Whether your own session was last used from there'),
    created_at: timestamp('When it has asked'),
    expires_at: timestamp('Until when it can be approved'),
  },
  { title: 'TypedDeviceCode' },
);

/** Routes with which programs without a browser sign in, and people let them (RFC 8628). */
export const deviceCodeRoutes: Routes = (app, platform) => {
  app.post(
    '/v1/auth/device',
    {
      config: { policy: PUBLIC, servedOnFullDisk: true, guessable: 'per address' },
      schema: {
        operationId: 'createDeviceCode',
        summary: 'Begin the sign-in of a program that a person approves in a browser',
        description: 'As RFC 8628 describes it, with names of fields and codes of this API.',
        body: body({ name: sessionName }),
        response: { 201: DeviceCode },
      },
    },
    (request, reply) => {
      const made = requestDeviceCode(platform, request.body.name, sessionOrigin(request));
      void reply.code(201);
      return {
        device_code: made.deviceCode,
        user_code: made.userCode,
        expires_in: made.expiresInS,
        verification_uri: ownOrigin(platform, request) + DEVICE_PAGE,
        interval: made.intervalS,
      };
    },
  );

  app.post(
    '/v1/auth/device/token',
    {
      config: {
        policy: PUBLIC,
        servedOnFullDisk: true,
        refusals: ['AUTHORIZATION_PENDING', 'SLOW_DOWN', 'ACCESS_DENIED', 'EXPIRED_TOKEN'],
      },
      schema: {
        operationId: 'openDeviceSession',
        summary: 'Get the session of a program once a person has approved it',
        description:
          'Answers once; then the code is of no use. Until then ask every `interval` seconds, and with SLOW_DOWN every `interval` seconds of that answer.',
        body: body({ device_code: text('The code of the program', { maxLength: 128 }) }),
        response: { 200: Session },
      },
    },
    (request) => sessionView(openDeviceSession(platform, request.body.device_code, sessionOrigin(request))),
  );

  app.post(
    '/v1/me/device-codes',
    {
      config: { policy: ACCOUNT, servedOnFullDisk: true, guessable: 'per address', refusals: ['DEVICE_CODE_INVALID'] },
      schema: {
        operationId: 'findDeviceCode',
        summary: 'Look up what the program asks for whose code a person has typed',
        description:
          'After that, only this session can approve or deny it. Five wrong codes in ten minutes are the limit of a user. Let nobody but the person give you the code: no link and no message.',
        body: body({ user_code: userCode }),
        response: { 200: TypedDeviceCode },
      },
    },
    (request) =>
      typedCodeView(typeDeviceCode(platform, accountOf(request), request.body.user_code, clientNetwork(request))),
  );

  app.post(
    '/v1/me/device-codes/:id/approve',
    {
      config: { policy: ACCOUNT, servedOnFullDisk: true, refusals: ['DEVICE_CODE_INVALID', 'PROOF_REQUIRED'] },
      schema: {
        operationId: 'approveDeviceCode',
        summary: 'Let the program sign in as you',
        description: 'Its session is among your sessions, by its name, and can be ended there.',
        params: idOf('device code'),
        response: { 204: NoContent },
      },
    },
    (request, reply) => {
      approveDevice(platform, accountOf(request), request.params.id);
      void reply.code(204);
      return null;
    },
  );

  app.post(
    '/v1/me/device-codes/:id/deny',
    {
      config: { policy: ACCOUNT, servedOnFullDisk: true, refusals: ['DEVICE_CODE_INVALID'] },
      schema: {
        operationId: 'denyDeviceCode',
        summary: 'Refuse to let the program sign in',
        params: idOf('device code'),
        response: { 204: NoContent },
      },
    },
    (request, reply) => {
      denyDevice(platform, accountOf(request), request.params.id);
      void reply.code(204);
      return null;
    },
  );
};

function typedCodeView({ id, name, device, network, isSameNetwork, created_at, expires_at }: DeviceRequest) {
  return {
    id,
    name,
    device,
    address: network,
    is_same_address: isSameNetwork,
    created_at: iso(created_at),
    expires_at: iso(expires_at),
  };
}
