import { Type } from 'typebox';
import { setDisputed } from '../../services/billing/disputes.js';
import { grantCredit } from '../../services/billing/credits.js';
import { listOrganizations, type OrganizationRow } from '../../services/accounts/organizations.js';
import {
  createTemplate,
  deactivateTemplate,
  systemBy,
  updateTemplate,
} from '../../services/catalogue/template-editing.js';
import { OPERATOR, accountOf } from '../policy.js';
import { body, flag, iso, micro, nameOf, nullable, optional, text, timestamp, uuid } from '../schemas.js';
import { organizationFacts } from './organizations.js';
import { idOf, NoContent, page, PageQuery, viewPage, type Routes } from './routes.js';
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
    coming_soon: flag('Whether it is announced, and cannot be deployed yet'),
    recommended: flag('Whether it is under the tab `recommended`'),
  }),
});
const TemplatePatch = Type.Partial(TemplateBody, { additionalProperties: false });

const Organization = Type.Object(
  {
    ...organizationFacts,
  },
  { title: 'OperatedOrganization' },
);

export const Credit = Type.Object(
  {
    id: uuid('The id of the transaction'),
    organization_id: uuid('The organization that got it'),
    amount_micro: micro('What was granted; negative: taken back'),
    balance_micro: micro('The balance of the organization after it'),
    reason: nullable(text('Why: the renter sees it among the transactions')),
    created_at: timestamp('When it was booked'),
  },
  { title: 'Credit' },
);

/** Operators: the system's templates. */
export const systemTemplateRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.post(
    '/v1/operator/templates',
    {
      config,
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
      config: { ...config, refusals: ['TEMPLATE_NOT_FOUND'] },
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
      config: { ...config, refusals: ['TEMPLATE_NOT_FOUND'] },
      schema: {
        operationId: 'takeDownTemplate',
        summary: 'Deactivate a template, whoever owns it',
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

/** Operators: the organizations that rent. */
export const operatorRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.get(
    '/v1/operator/organizations',
    {
      config,
      schema: {
        operationId: 'listOrganizations',
        summary: 'List the organizations, newest first',
        querystring: PageQuery,
        response: { 200: page(Organization) },
      },
    },
    (request) => viewPage(listOrganizations(platform, request.query), organizationView),
  );
  app.post(
    '/v1/operator/organizations/:id/credits',
    {
      config: { ...config, refusals: ['ORGANIZATION_NOT_FOUND'] },
      schema: {
        operationId: 'grantCredit',
        summary: 'Grant credit to an organization, or take it back',
        params: idOf('organization'),
        body: body({
          amount_micro: micro('What to grant; negative: to take back', {
            minimum: -1_000_000_000_000,
            maximum: 1_000_000_000_000,
          }),
          reason: nameOf('Why: the renter sees it among the transactions', 256),
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
        operationId: 'openDispute',
        summary: 'Open a payment dispute',
        description: 'The payments of the organization are frozen: it can neither deploy nor start.',
        params: idOf('organization'),
        response: { 200: Organization },
      },
    },
    (request) => organizationView(setDisputed(platform, accountOf(request), request.params.id, true)),
  );
  app.delete(
    '/v1/operator/organizations/:id/dispute',
    {
      config: { ...config, refusals: ['ORGANIZATION_NOT_FOUND'] },
      schema: {
        operationId: 'closeDispute',
        summary: 'Close the payment dispute of an organization',
        params: idOf('organization'),
        response: { 200: Organization },
      },
    },
    (request) => organizationView(setDisputed(platform, accountOf(request), request.params.id, false)),
  );
};

function organizationView(row: OrganizationRow) {
  return { ...row, payments_frozen: row.payments_frozen_at !== null, created_at: iso(row.created_at) };
}
