import { Type } from 'typebox';
import { ORGANIZATION_NEEDS } from '../../domain/need.js';
import { setDisputed } from '../../services/billing/disputes.js';
import { grantCredit } from '../../services/billing/credits.js';
import { listOrganizations } from '../../services/accounts/find-organizations.js';
import type { OrganizationRow } from '../../services/accounts/organizations.js';
import {
  createTemplate,
  deactivateTemplate,
  systemBy,
  updateTemplate,
} from '../../services/catalogue/template-editing.js';
import { getSystemTemplate, listSystemTemplates } from '../../services/catalogue/templates.js';
import { OPERATOR, accountOf } from '../policy.js';
import {
  IdempotencyHeaders,
  body,
  choice,
  flag,
  iso,
  micro,
  nameOf,
  nullable,
  optional,
  text,
  timestamp,
  uuid,
} from '../schemas.js';
import { organizationFacts, suspensionView } from './organizations.js';
import { idOf, NoContent, page, pageFields, PageQuery, viewPage, type Routes } from './routes.js';
import {
  TEMPLATE_LIMIT_BYTES,
  Template,
  optionalTemplateFields,
  requiredTemplateFields,
  templateView,
} from './templates.js';

const TemplateBody = body({
  ...requiredTemplateFields,
  ...optional(optionalTemplateFields),
  ...optional({
    coming_soon: flag('Whether the template is announced but cannot be deployed yet'),
    recommended: flag('Whether the template is listed under the tab `recommended`'),
  }),
});
const TemplatePatch = Type.Partial(TemplateBody, { additionalProperties: false });

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

/** Routes for operators: system templates. */
export const systemTemplateRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.get(
    '/v1/operator/templates',
    {
      config,
      schema: {
        operationId: 'listSystemTemplates',
        summary: 'List the active system templates, by name',
        querystring: PageQuery,
        response: { 200: page(Template) },
      },
    },
    (request) => viewPage(listSystemTemplates(platform, request.query), templateView),
  );
  app.get(
    '/v1/operator/templates/:id',
    {
      config: { ...config, refusals: ['TEMPLATE_NOT_FOUND'] },
      schema: {
        operationId: 'getSystemTemplate',
        summary: 'Get a system template with its readme and start script',
        params: idOf('template'),
        response: { 200: Template },
      },
    },
    (request) => templateView(getSystemTemplate(platform, request.params.id)),
  );

  app.post(
    '/v1/operator/templates',
    {
      config: { ...config, proof: true },
      bodyLimit: TEMPLATE_LIMIT_BYTES,
      schema: {
        operationId: 'createSystemTemplate',
        summary: 'Create a system template',
        body: TemplateBody,
        response: { 201: Template },
      },
    },
    (request, reply) => {
      void reply.code(201);
      return templateView(createTemplate(platform, systemBy(accountOf(request)), request.body));
    },
  );
  app.patch(
    '/v1/operator/templates/:id',
    {
      config: { ...config, proof: true, refusals: ['TEMPLATE_NOT_FOUND'] },
      bodyLimit: TEMPLATE_LIMIT_BYTES,
      schema: {
        operationId: 'updateSystemTemplate',
        summary: 'Change a system template',
        params: idOf('template'),
        body: TemplatePatch,
        response: { 200: Template },
      },
    },
    (request) => templateView(updateTemplate(platform, systemBy(accountOf(request)), request.params.id, request.body)),
  );
  app.delete(
    '/v1/operator/templates/:id',
    {
      config: { ...config, proof: true, refusals: ['TEMPLATE_NOT_FOUND'] },
      schema: {
        operationId: 'takeDownTemplate',
        summary: 'Deactivate a template of any owner',
        params: idOf('template'),
        response: { 204: NoContent },
      },
    },
    (request, reply) => {
      deactivateTemplate(platform, systemBy(accountOf(request)), request.params.id);
      void reply.code(204);
      return null;
    },
  );
};

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
      config: { ...config, refusals: ['ORGANIZATION_NOT_FOUND'] },
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
