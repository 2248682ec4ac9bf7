import { Type } from 'typebox';
import {
  createEnrollmentToken,
  listEnrollmentTokens,
  revokeEnrollmentToken,
  type EnrollmentTokenDetails,
} from '../../services/machines/enrollment.js';
import type { App } from '../../services/parts/parts.js';
import type { ReleaseFile } from '../../host-release/release-file.js';
import { OPERATOR, accountOf } from '../access/policy.js';
import { body, flag, integer, iso, isoOrNull, nullable, optional, text, timestamp, uuid } from '../schema/schemas.js';
import { idOf, NoContent, page, pageFields, viewPage, type Routes } from './routes.js';

const Token = Type.Object(
  {
    id: uuid('The id of the token'),
    max_uses: integer('The maximum number of hosts that can enroll with the token'),
    uses: integer('The number of hosts that have enrolled with it'),
    created_at: timestamp('When the token was created'),
    expires_at: timestamp('When the token expires'),
    revoked_at: nullable(timestamp('When the token was revoked; null: it was not')),
    machine_id: nullable(uuid('The only machine that can enroll with the token, again; null: any host can enroll')),
  },
  { title: 'EnrollmentToken' },
);
const NewToken = Type.Intersect([
  Token,
  Type.Object({
    token: text('The token with which a host enrolls'),
    grpc_address: nullable(
      text(
        'The address that hosts dial (`GPURENT_PUBLIC_GRPC_ADDRESS`), `HOST:PORT`; null: the operator has not set it',
      ),
    ),
    install: nullable(
      Type.Object(
        {
          url: text('Where hosts load the script that installs the agent'),
          sha256: text('The SHA-256 of the release that the script installs, in hex: its option `--sha256`'),
        },
        { description: 'What installs the agent; null: this control plane gives hosts no release' },
      ),
    ),
  }),
]);

const TokenQuery = Type.Object({
  ...pageFields,
  ...optional({
    usable: flag('True: only tokens with which a host can still enroll, those that expire first first; false: all'),
  }),
});

/** Returns routes for operators: enrollment tokens. `release`: what hosts are given. */
export const enrollmentTokenRoutes =
  (release: ReleaseFile | undefined): Routes =>
  (app, platform) => {
    const config = { policy: OPERATOR };

    app.post(
      '/v1/operator/enrollment-tokens',
      {
        config: { ...config, proof: true, refusals: ['MACHINE_NOT_FOUND'] },
        schema: {
          operationId: 'createEnrollmentToken',
          summary: 'Create an enrollment token',
          description:
            'Only this response contains the token. With `machine_id`, only that machine can enroll with it, again.',
          body: body({
            max_uses: integer('The maximum number of hosts that can enroll with the token', {
              minimum: 1,
              maximum: 10_000,
              default: 1,
            }),
            expires_in_hours: integer('After how many hours the token expires', {
              minimum: 1,
              maximum: 720,
              default: 24,
            }),
            ...optional({ machine_id: uuid('The only machine that can enroll with the token, again') }),
          }),
          response: { 201: NewToken },
        },
      },
      async (request, reply) => {
        const { token, ...row } = createEnrollmentToken(platform, accountOf(request), request.body);
        const install = await installOf(release, platform);
        void reply.code(201);
        return { ...tokenView(row), token, grpc_address: platform.publicGrpcAddress, install };
      },
    );
    app.get(
      '/v1/operator/enrollment-tokens',
      {
        config,
        schema: {
          operationId: 'listEnrollmentTokens',
          summary: 'List the enrollment tokens, newest first',
          querystring: TokenQuery,
          response: { 200: page(Token) },
        },
      },
      (request) => viewPage(listEnrollmentTokens(platform, request.query), tokenView),
    );
    app.delete(
      '/v1/operator/enrollment-tokens/:id',
      {
        config,
        schema: {
          operationId: 'revokeEnrollmentToken',
          summary: 'Revoke an enrollment token',
          params: idOf('enrollment token'),
          response: { 204: NoContent },
        },
      },
      (request, reply) => {
        revokeEnrollmentToken(platform, accountOf(request), request.params.id);
        void reply.code(204);
        return null;
      },
    );
  };

/** Returns what the line for a host has of the release; null if there is none, or it cannot be read now. */
async function installOf(release: ReleaseFile | undefined, { publicUrl }: Pick<App, 'publicUrl'>) {
  const found = await release?.read().catch(() => undefined);
  return found && publicUrl !== null ? { url: `${publicUrl}/install`, sha256: found.sha256 } : null;
}

function tokenView(row: EnrollmentTokenDetails) {
  return {
    ...row,
    created_at: iso(row.created_at),
    expires_at: iso(row.expires_at),
    revoked_at: isoOrNull(row.revoked_at),
  };
}
