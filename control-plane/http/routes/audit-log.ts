import { Type } from 'typebox';
import { ACTOR_KINDS, ACTS } from '../../domain/act.js';
import { listActs, type ActRow } from '../../services/system/acts.js';
import { ADMIN, sessionOf } from '../access/policy.js';
import { choice, integer, iso, nullable, optional, text, timestamp } from '../schema/schemas.js';
import { answerCsv } from './csv.js';
import { Period, withPeriod } from './period.js';
import { page, pageFields, viewPage, type Routes } from './routes.js';

const Entry = Type.Object(
  {
    id: integer('The number of the entry in the organization'),
    at: timestamp('When it was done'),
    actor_kind: choice(
      ACTOR_KINDS,
      'Who did it: a `user`, an `api_key`, an `operator` of the marketplace, or the control plane itself (`system`)',
    ),
    actor_id: nullable(text('The id of the user or API key; null: an operator or the control plane itself')),
    actor_name: text('The e-mail address of the user, or the name and prefix of the API key'),
    address: nullable(
      text(
        'The network address that the request came from; null: it was an operator, there was no request, or it is unknown',
      ),
    ),
    action: text('What was done, such as `instance.stop`; later releases can add more'),
    object: text('The path of what it was done to, such as `instances/ID`'),
    reason: nullable(text('The reason that an operator gave, or why the control plane did it; null: none')),
  },
  { title: 'OrganizationAuditEntry' },
);

const AuditQuery = Type.Object({
  ...pageFields,
  ...Period,
  ...optional({
    actor_kind: choice(ACTOR_KINDS, 'Only what these have done'),
    actor_id: text('Only what the user or API key with this id has done', { maxLength: 64 }),
    action: choice(ACTS, 'Only this action'),
  }),
});

const FILE = {
  name: 'audit-log.csv',
  columns: ['id', 'at', 'actor_kind', 'actor_id', 'actor_name', 'address', 'action', 'object', 'reason'],
};
const DESCRIPTION =
  'What members, API keys and operators have done, and what the control plane itself has stopped and destroyed. Entries are kept for 400 days, and a million of an organization. Changes to a person’s own account, such as its password, are not in it.';

/** Routes for admins: what was done in the organization. */
export const auditLogRoutes: Routes = (app, platform) => {
  app.get(
    '/v1/audit-log',
    {
      config: { policy: ADMIN },
      schema: {
        operationId: 'listAuditLog',
        summary: 'List what was done in the organization, newest first',
        description: `${DESCRIPTION} With a filter, a page looks at 2,000 entries at most: it can have fewer than \`limit\` although \`next_cursor\` is not null.`,
        querystring: AuditQuery,
        response: { 200: page(Entry) },
      },
    },
    (request) => viewPage(listActs(platform, sessionOf(request), withPeriod(request.query)), entryView),
  );

  app.get(
    '/v1/audit-log.csv',
    {
      config: { policy: ADMIN },
      schema: {
        operationId: 'exportAuditLog',
        summary: 'Download what was done in the organization as a CSV file, newest first',
        description: DESCRIPTION,
        produces: ['text/csv'],
        querystring: AuditQuery,
        response: { 200: text('A header line, then one line for each entry') },
      },
    },
    (request, reply) =>
      answerCsv(
        reply,
        withPeriod(request.query),
        FILE,
        (query) => listActs(platform, sessionOf(request), query),
        entryView,
      ),
  );
};

/** Renters do not learn which operator it was, and so not from where. */
function entryView({ number, at, organization_id: _, ...row }: ActRow) {
  return { id: number, at: iso(at), ...row, address: row.actor_kind === 'operator' ? null : row.address };
}
