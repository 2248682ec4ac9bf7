import { Type } from 'typebox';
import { ORGANIZATION_NEEDS } from '../../../domain/machines/need.js';
import { setDisputed } from '../../../services/billing/payments/disputes.js';
import { grantCredit } from '../../../services/billing/ledger/credits.js';
import { listOrganizations } from '../../../services/organizations/find-organizations.js';
import type { OrganizationRow } from '../../../services/organizations/organizations.js';
import { OPERATOR, accountOf } from '../../access/policy.js';
import {
  IdempotencyHeaders,
  body,
  choice,
  iso,
  micro,
  nameOf,
  nullable,
  optional,
  text,
  timestamp,
  uuid,
} from '../../schema/schemas.js';
import { organizationFacts, suspensionView } from '../organizations.js';
import { idOf, page, pageFields, viewPage, type Routes } from '../routes.js';

export const OperatedOrganization = Type.Object(
  {
    ...organizationFacts,
  },
  { title: 'OperatedOrganization' },
);

const OrganizationQuery = Type.Object({
  ...pageFields,
  ...optional({
    name: text('Only organizations whose name begins with this', { minLength: 1, maxLength: 100 }),
    member_email: text('Only organizations with a member whose e-mail address begins with this; not with `name`', {
      minLength: 1,
      maxLength: 254,
    }),
    need: choice(
      [...ORGANIZATION_NEEDS],
      'Only organizations that need an act for this reason, as the overview counts them; not with `name` or `member_email`',
    ),
  }),
});

/** Why an operator freezes payments, or ends that. */
const DisputeBody = body(
  optional({ reason: nameOf('The reason; members read it in the audit log of the organization', 256) }),
);

export const Credit = Type.Object(
  {
    id: uuid('The id of the transaction'),
    organization_id: uuid('The id of the organization that got the credit'),
    amount_micro: micro('The amount granted; negative: taken back'),
    balance_micro: micro('The balance of the organization after the transaction'),
    reason: nullable(text('The reason; the renter sees it in the transactions')),
    created_at: timestamp('When the transaction was posted'),
  },
  { title: 'Credit' },
);

/** Routes for operators: organizations, credits and payment disputes. */
export const operatorRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.get(
    '/v1/operator/organizations',
    {
      config,
      schema: {
        operationId: 'listOrganizations',
        summary: 'List the organizations, newest first',
        description:
          'With `name`, in the order of their names; with `member_email`, in the order of the addresses. In both, A to Z count as a to z. With `need` `organization_suspended`, those first whose instances are looked at next.',
        querystring: OrganizationQuery,
        response: { 200: page(OperatedOrganization) },
      },
    },
    (request) => viewPage(listOrganizations(platform, request.query), operatedOrganizationView),
  );
  app.post(
    '/v1/operator/organizations/:id/credits',
    {
      config: { ...config, proof: true, refusals: ['ORGANIZATION_NOT_FOUND', 'IDEMPOTENCY_KEY_REUSED'] },
      schema: {
        operationId: 'grantCredit',
        summary: 'Grant credit to an organization, or take credit back',
        headers: IdempotencyHeaders,
        params: idOf('organization'),
        body: body({
          amount_micro: micro('The amount to grant; negative: to take back', {
            minimum: -1_000_000_000_000,
            maximum: 1_000_000_000_000,
          }),
          reason: nameOf('The reason; the renter sees it in the transactions', 256),
        }),
        response: { 201: Credit },
      },
    },
    (request, reply) => {
      const key = request.headers['idempotency-key'];
      const { credit, replayed } = grantCredit(platform, accountOf(request), request.params.id, request.body, key);
      void reply.code(201);
      if (replayed) void reply.header('Idempotent-Replayed', 'true');
      return { ...credit, created_at: iso(credit.created_at) };
    },
  );

  app.post(
    '/v1/operator/organizations/:id/dispute',
    {
      config: { ...config, servedOnFullDisk: true, refusals: ['ORGANIZATION_NOT_FOUND'] },
      schema: {
        operationId: 'openDispute',
        summary: 'Open a payment dispute of an organization',
        description: 'Freezes the payments of the organization: it can neither deploy nor start instances.',
        params: idOf('organization'),
        body: DisputeBody,
        response: { 200: OperatedOrganization },
      },
    },
    (request) =>
      operatedOrganizationView(setDisputed(platform, accountOf(request), request.params.id, true, request.body.reason)),
  );
  app.delete(
    '/v1/operator/organizations/:id/dispute',
    {
      config: { ...config, refusals: ['ORGANIZATION_NOT_FOUND'] },
      schema: {
        operationId: 'closeDispute',
        summary: 'Close the payment dispute of an organization',
        params: idOf('organization'),
        body: DisputeBody,
        response: { 200: OperatedOrganization },
      },
    },
    (request) =>
      operatedOrganizationView(
        setDisputed(platform, accountOf(request), request.params.id, false, request.body.reason),
      ),
  );
};

export function operatedOrganizationView(row: OrganizationRow) {
  const { payments_frozen_at } = row;
  return {
    ...row,
    payments_frozen: payments_frozen_at !== null,
    suspension: suspensionView(row),
    created_at: iso(row.created_at),
  };
}
