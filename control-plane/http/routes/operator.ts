import { Type } from 'typebox';
import { setDisputed } from '../../services/money/disputes.js';
import { grantCredit } from '../../services/money/credits.js';
import { listOrganizations, type OrganizationRow } from '../../services/accounts/organizations.js';
import {
  createTemplate,
  deactivateTemplate,
  systemBy,
  updateTemplate,
} from '../../services/catalogue/template-editing.js';
import { OPERATOR, accountOf } from '../policy.js';
import { Micro, Timestamp, Uuid, body, iso, nullable, optional, nameOf } from '../schemas.js';
import { IdParams, NoContent, PageQuery, page, viewPage, type Routes } from './routes.js';
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
  ...optional({ coming_soon: Type.Boolean(), recommended: Type.Boolean() }),
});
const TemplatePatch = Type.Partial(TemplateBody, { additionalProperties: false });

const Organization = Type.Object(
  {
    id: Uuid,
    name: Type.String(),
    balance_micro: Micro,
    payments_frozen: Type.Boolean(),
    created_at: Timestamp,
  },
  { title: 'OperatedOrganization' },
);

export const Credit = Type.Object(
  {
    id: Uuid,
    organization_id: Uuid,
    amount_micro: Micro,
    balance_micro: Micro,
    reason: nullable(Type.String()),
    created_at: Timestamp,
  },
  { title: 'Credit' },
);

/** Operators: the system's templates, and the organisations that rent. */
export const operatorRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.post(
    '/v1/operator/templates',
    {
      config,
      bodyLimit: TEMPLATE_LIMIT_BYTES,
      schema: { summary: 'Make a system template', body: TemplateBody, response: { 201: Template } },
    },
    (request, reply) => {
      void reply.code(201);
      return templateView(createTemplate(platform, systemBy(accountOf(request)), request.body));
    },
  );
  app.patch(
    '/v1/operator/templates/:id',
    {
      config: { ...config, refusals: ['TEMPLATE_NOT_FOUND'] },
      bodyLimit: TEMPLATE_LIMIT_BYTES,
      schema: {
        summary: 'Change a system template',
        params: IdParams,
        body: TemplatePatch,
        response: { 200: Template },
      },
    },
    (request) => templateView(updateTemplate(platform, systemBy(accountOf(request)), request.params.id, request.body)),
  );
  app.delete(
    '/v1/operator/templates/:id',
    {
      config: { ...config, refusals: ['TEMPLATE_NOT_FOUND'] },
      schema: { summary: 'Deactivate a template, whoever has made it', params: IdParams, response: { 204: NoContent } },
    },
    (request, reply) => {
      deactivateTemplate(platform, systemBy(accountOf(request)), request.params.id);
      void reply.code(204);
      return null;
    },
  );

  app.get(
    '/v1/operator/organizations',
    {
      config,
      schema: { summary: 'Organizations, newest first', querystring: PageQuery, response: { 200: page(Organization) } },
    },
    (request) => viewPage(listOrganizations(platform, request.query), organizationView),
  );
  app.post(
    '/v1/operator/organizations/:id/credits',
    {
      config: { ...config, refusals: ['ORGANIZATION_NOT_FOUND'] },
      schema: {
        summary: 'Grant credit, with a reason',
        params: IdParams,
        body: body({
          amount_micro: Type.Integer({ minimum: 1, maximum: 1_000_000_000_000 }),
          reason: nameOf(256),
        }),
        response: { 201: Credit },
      },
    },
    (request, reply) => {
      const credit = grantCredit(platform, accountOf(request), request.params.id, request.body);
      void reply.code(201);
      return { ...credit, created_at: iso(credit.created_at) };
    },
  );

  app.post(
    '/v1/operator/organizations/:id/dispute',
    {
      config: { ...config, refusals: ['ORGANIZATION_NOT_FOUND'] },
      schema: {
        summary: "Open a payment dispute: the organization's payments are frozen",
        params: IdParams,
        response: { 200: Organization },
      },
    },
    (request) => organizationView(setDisputed(platform, accountOf(request), request.params.id, true)),
  );
  app.delete(
    '/v1/operator/organizations/:id/dispute',
    {
      config: { ...config, refusals: ['ORGANIZATION_NOT_FOUND'] },
      schema: { summary: 'Close the payment dispute', params: IdParams, response: { 200: Organization } },
    },
    (request) => organizationView(setDisputed(platform, accountOf(request), request.params.id, false)),
  );
};

function organizationView(row: OrganizationRow) {
  return { ...row, payments_frozen: row.payments_frozen_at !== null, created_at: iso(row.created_at) };
}
