import { Type } from 'typebox';
import { endSessions, setOperator } from '../../../services/identity/operators/operators.js';
import type { UserDetails } from '../../../services/identity/users/users.js';
import {
  describeForOperator,
  listKeysOf,
  listMachinesOf,
  listTemplatesOf,
} from '../../../services/actions/organization-contents.js';
import { restoreOrganization, suspendOrganization } from '../../../services/actions/suspend.js';
import { sendNotice } from '../../../services/machines/notices.js';
import { OPERATOR, accountOf } from '../../access/policy.js';
import { body, choice, flag, integer, iso, nameOf, text, timestamp, uuid } from '../../schema/schemas.js';
import { ApiKey, apiKeyView } from '../api-keys.js';
import { OperatedUser } from './users.js';
import { OperatedOrganization, operatedOrganizationView } from './organizations.js';
import { Organization, organizationView } from '../organizations.js';
import { idOf, page, PageQuery, viewPage, type Routes } from '../routes.js';

const reason = (who: string) => nameOf(`The reason; ${who}`, 256);
const RENTERS = 'members read it in the events and the audit log of the organization';
const OPERATORS = 'operators read it in their events and their audit log';

const TemplateName = Type.Object(
  {
    id: uuid('The id of the template'),
    name: text('The name of the template'),
    kind: choice(['container', 'vm'], 'Whether it runs a container or a virtual machine'),
    visibility: choice(['system', 'public', 'organization'], 'Who can deploy it'),
    image: text('The image that it runs'),
    created_at: timestamp('When the template was created'),
  },
  { title: 'TemplateName' },
);
const UsedMachine = Type.Object(
  {
    id: uuid('The id of the machine'),
    name: text('The name of the machine'),
    region: text('The region of the machine'),
    instances: integer('How many instances the organization has on it that are not destroyed'),
  },
  { title: 'UsedMachine' },
);

/** Routes for operators: suspended organizations. */
export const suspensionRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR, proof: true as const, refusals: ['ORGANIZATION_NOT_FOUND'] as const };
  const params = idOf('organization');

  app.post(
    '/v1/operator/organizations/:id/suspend',
    {
      config: { ...config, servedOnFullDisk: true },
      schema: {
        operationId: 'suspendOrganization',
        summary: 'Suspend an organization',
        description:
          'Nothing of it is deployed or started, what runs is stopped, and its schedules start nothing. Disks and GPUs stay as after any stop, disks are charged, and after `keep_disks_days` the instances are destroyed. A repetition changes nothing; other words change the reason and the days.',
        params,
        body: body({
          reason: reason(RENTERS),
          keep_disks_days: integer('How many days after the suspension its disks are kept', {
            minimum: 1,
            maximum: 3_650,
            default: 30,
          }),
        }),
        response: { 200: OperatedOrganization },
      },
    },
    (request) =>
      operatedOrganizationView(suspendOrganization(platform, accountOf(request), request.params.id, request.body)),
  );
  app.post(
    '/v1/operator/organizations/:id/restore',
    {
      config,
      schema: {
        operationId: 'restoreOrganization',
        summary: 'End the suspension of an organization',
        description: 'Its instances can be started again. Nothing is started.',
        params,
        body: body({ reason: reason(RENTERS) }),
        response: { 200: OperatedOrganization },
      },
    },
    (request) =>
      operatedOrganizationView(restoreOrganization(platform, accountOf(request), request.params.id, request.body)),
  );
};

/** Routes for operators: what an organization has, without its secrets. */
export const organizationContentRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR, refusals: ['ORGANIZATION_NOT_FOUND'] as const };
  const params = idOf('organization');

  app.get(
    '/v1/operator/organizations/:id',
    {
      config,
      schema: {
        operationId: 'getAnyOrganization',
        summary: 'Get an organization with its balance and burn',
        params,
        response: { 200: Organization },
      },
    },
    (request) => organizationView(describeForOperator(platform, request.params.id)),
  );
  app.get(
    '/v1/operator/organizations/:id/api-keys',
    {
      config,
      schema: {
        operationId: 'listApiKeysOfOrganization',
        summary: 'List the active API keys of an organization, newest first',
        params,
        querystring: PageQuery,
        response: { 200: page(ApiKey) },
      },
    },
    (request) => viewPage(listKeysOf(platform, request.params.id, request.query), apiKeyView),
  );
  app.get(
    '/v1/operator/organizations/:id/templates',
    {
      config,
      schema: {
        operationId: 'listTemplatesOfOrganization',
        summary: 'List the active templates of an organization, newest first',
        description: 'Without their environments, scripts and passwords.',
        params,
        querystring: PageQuery,
        response: { 200: page(TemplateName) },
      },
    },
    (request) =>
      viewPage(listTemplatesOf(platform, request.params.id, request.query), (row) => ({
        ...row,
        created_at: iso(row.created_at),
      })),
  );
  app.get(
    '/v1/operator/organizations/:id/machines',
    {
      config,
      schema: {
        operationId: 'listMachinesOfOrganization',
        summary: 'List the machines on which an organization has instances that are not destroyed',
        params,
        querystring: PageQuery,
        response: { 200: page(UsedMachine) },
      },
    },
    (request) => ({ next_cursor: null, ...listMachinesOf(platform, request.params.id, request.query) }),
  );
};

/** Routes for operators: what they do to users, and say to renters. */
export const peopleRoutes: Routes = (app, platform) => {
  app.post(
    '/v1/operator/users/:id/end-sessions',
    {
      config: { policy: OPERATOR, servedOnFullDisk: true, proof: true, refusals: ['USER_NOT_FOUND'] },
      schema: {
        operationId: 'endUserSessions',
        summary: 'End every session of a user',
        description: 'Each organization of the user gets an event with the reason.',
        params: idOf('user'),
        body: body({
          reason: reason(RENTERS),
          revoke_api_keys: flag(
            'Also revokes the API keys that the user has created, team keys included, and withdraws the invitations that the user has made',
            {
              default: false,
            },
          ),
        }),
        response: {
          200: Type.Object({
            sessions: integer('How many sessions were ended'),
            api_keys: integer('How many API keys were revoked'),
          }),
        },
      },
    },
    (request) => endSessions(platform, accountOf(request), request.params.id, request.body),
  );
  app.put(
    '/v1/operator/users/:id/operator',
    {
      config: { policy: OPERATOR, proof: true, refusals: ['USER_NOT_FOUND'] },
      schema: {
        operationId: 'grantOperator',
        summary: 'Make a user an operator',
        params: idOf('user'),
        body: body({ reason: reason(OPERATORS) }),
        response: { 200: OperatedUser },
      },
    },
    (request) => userView(setOperator(platform, accountOf(request), request.params.id, true, request.body.reason)),
  );
  app.delete(
    '/v1/operator/users/:id/operator',
    {
      config: { policy: OPERATOR, proof: true, refusals: ['USER_NOT_FOUND', 'LAST_OPERATOR'] },
      schema: {
        operationId: 'withdrawOperator',
        summary: 'Make an operator an ordinary user',
        description: 'Refused for the last operator.',
        params: idOf('user'),
        body: body({ reason: reason(OPERATORS) }),
        response: { 200: OperatedUser },
      },
    },
    (request) => userView(setOperator(platform, accountOf(request), request.params.id, false, request.body.reason)),
  );
  app.post(
    '/v1/operator/machines/:id/notice',
    {
      config: { policy: OPERATOR, refusals: ['MACHINE_NOT_FOUND'] },
      schema: {
        operationId: 'sendMachineNotice',
        summary: 'Tell all renters of a machine something',
        description:
          'Each organization with an instance on the machine that is not destroyed gets an event, and its members a mail if they have not switched off notices. Once in ten minutes for each machine.',
        params: idOf('machine'),
        body: body({ message: nameOf('What to say, as plain text on one line', 500) }),
        response: { 200: Type.Object({ organizations: integer('How many organizations were told') }) },
      },
    },
    (request) => sendNotice(platform, accountOf(request), request.params.id, request.body.message),
  );
};

function userView(user: UserDetails) {
  return { ...user, is_operator: user.is_operator === 1, created_at: iso(user.created_at) };
}
