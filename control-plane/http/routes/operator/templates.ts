import { Type } from 'typebox';
import {
  createTemplate,
  deactivateTemplate,
  systemBy,
  updateTemplate,
} from '../../../services/catalogue/template-editing.js';
import { getSystemTemplate, listSystemTemplates } from '../../../services/catalogue/templates.js';
import { OPERATOR, accountOf } from '../../access/policy.js';
import { body, flag, optional } from '../../schema/schemas.js';
import { NoContent, PageQuery, idOf, page, viewPage, type Routes } from '../routes.js';
import {
  TEMPLATE_LIMIT_BYTES,
  Template,
  optionalTemplateFields,
  requiredTemplateFields,
  templateView,
} from '../templates.js';

const TemplateBody = body({
  ...requiredTemplateFields,
  ...optional(optionalTemplateFields),
  ...optional({
    coming_soon: flag('Whether the template is announced but cannot be deployed yet'),
    recommended: flag('Whether the template is listed under the tab `recommended`'),
  }),
});
const TemplatePatch = Type.Partial(TemplateBody, { additionalProperties: false });

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
