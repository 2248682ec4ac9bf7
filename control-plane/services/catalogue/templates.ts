import { maySeeSecrets, type Caller } from '../../domain/caller.js';
import { withoutValues } from '../../domain/instances/environment.js';
import { Refusal } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { listOf, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { pageOf, type Page, type PageRequest } from '../system/pages.js';
import type { Core } from '../system/platform.js';
import { openEnvironment, readPorts, type TemplateDetails, type TemplateMode } from './stored-template.js';

export type { RegistryCredential, TemplateDetails, TemplateMode } from './stored-template.js';

/** Returns an active template, as the list shows it but whole. Refuses an unknown, a foreign and a deactivated template alike, with TEMPLATE_NOT_FOUND. */
export function getTemplate(core: Core, caller: Caller, id: string): TemplateDetails {
  return core.store.transact((tx) => {
    const row = findTemplate(tx, caller.organizationId, id);
    return asSeenBy(caller, row, describeWithPublisher(core, tx, row));
  });
}

/**
 * Returns a template with this hash: a system template, else one of the caller's organization, else the oldest public one. So
 * nobody can replace the template behind a hash by publishing a copy. Refuses with TEMPLATE_NOT_FOUND.
 */
export function getTemplateByHash(core: Core, caller: Caller, hashId: string): TemplateDetails {
  return core.store.transact((tx) => {
    // What is sorted is short: there can be thousands of copies, each megabytes long.
    const found = tx.get(
      visibleTemplates(caller.organizationId)
        .clearSelect()
        .select('id')
        .where('hash_id', '=', hashId)
        .orderBy((eb) => eb('visibility', '=', 'system'), 'desc')
        .orderBy((eb) => eb('organization_id', '=', caller.organizationId), 'desc')
        .orderBy('created_at')
        .orderBy('id')
        .limit(1),
    );
    if (!found) throw templateNotFound();
    const row = findTemplate(tx, caller.organizationId, found.id);
    return asSeenBy(caller, row, describeWithPublisher(core, tx, row));
  });
}

/** Lists, for an operator, the active system templates by name, without readme and onstart. */
export function listSystemTemplates(core: Core, request: PageRequest): Page<TemplateDetails> {
  return core.store.transact((tx) => {
    const order = { by: { name: 'asc', id: 'asc' }, keyOf: ({ name, id }: Row<'templates'>) => [name, id] } as const;
    const { items, ...rest } = pageOf(tx, systemTemplates, request, order);
    const templates = items.map((row) => describeTemplate(core, row));
    return { ...rest, items: templates.map((template) => ({ ...template, readme: null, onstart: null })) };
  });
}

/** Returns an active system template for an operator, without its secret values. Refuses with TEMPLATE_NOT_FOUND. */
export function getSystemTemplate(core: Core, id: string): TemplateDetails {
  return core.store.transact((tx) => {
    const row = tx.get(systemTemplates.where('id', '=', id));
    if (!row) throw new Refusal('TEMPLATE_NOT_FOUND', 'no active system template has this id');
    return describeTemplate(core, row);
  });
}

const systemTemplates = query
  .selectFrom('templates')
  .selectAll()
  .where('deactivated_at', 'is', null)
  // For its index, which has no templates of organizations.
  .where('visibility', '<>', sql.lit('organization'))
  .where('visibility', '=', sql.lit('system'));

/** Returns a template as a caller sees it: without the values of its environment, if they may not see secrets. */
export function asSeenBy(caller: Caller, row: Row<'templates'>, described: TemplateDetails): TemplateDetails {
  // Not by the name of the organization, which others can have, too.
  const template = { ...described, is_own: row.organization_id === caller.organizationId };
  return maySeeSecrets(caller) ? template : { ...template, env: withoutValues(template.env) };
}

export function findTemplate(tx: Tx, organizationId: string, id: string): Row<'templates'> {
  const row = tx.get(visibleTemplate(organizationId, id));
  if (!row) throw templateNotFound();
  return row;
}

/** Returns the query of a template that is active, if the organization can see it. */
export function visibleTemplate(organizationId: string, id: string) {
  return visibleTemplates(organizationId).where('id', '=', id);
}

function visibleTemplates(organizationId: string) {
  return query
    .selectFrom('templates')
    .selectAll()
    .where('deactivated_at', 'is', null)
    .where((eb) =>
      eb.or([eb('visibility', '<>', sql.lit('organization')), eb('organization_id', '=', organizationId)]),
    );
}

function templateNotFound(): Refusal {
  return new Refusal('TEMPLATE_NOT_FOUND', 'no active template that this organization can see has this id');
}

/** Returns, by template id, the names of the organizations that own public templates. */
export function publishersOf(tx: Tx, rows: readonly Row<'templates'>[]): ReadonlyMap<string, string> {
  const published = rows.filter(({ visibility }) => visibility === 'public');
  const ids = published.flatMap(({ organization_id }) => organization_id ?? []);
  if (ids.length === 0) return new Map();
  const organizations = query.selectFrom('organizations').select(['id', 'name']).where('id', 'in', listOf(ids));
  const names = new Map(tx.all(organizations).map(({ id, name }) => [id, name]));
  return new Map(published.map(({ id, organization_id }) => [id, names.get(organization_id ?? '') ?? '']));
}

export function describeWithPublisher(core: Core, tx: Tx, row: Row<'templates'>): TemplateDetails {
  return describeTemplate(core, row, publishersOf(tx, [row]).get(row.id));
}

export function describeTemplate(
  { encryption }: Core,
  row: Row<'templates'>,
  publisher: string | null = null,
): TemplateDetails {
  const env = openEnvironment(encryption, row.env_encrypted);
  return {
    id: row.id,
    hash_id: row.hash_id,
    name: row.name,
    description: row.description,
    readme: row.readme,
    visibility: row.visibility,
    publisher,
    kind: row.kind,
    mode: JSON.parse(row.mode) as TemplateMode[],
    image: row.image,
    arch: row.arch,
    cuda_max: row.cuda_max,
    cuda_min: row.cuda_min,
    ssh_user: row.ssh_user,
    env: env.map((entry) => (entry.secret ? { ...entry, value: null } : entry)),
    onstart: row.onstart,
    command: JSON.parse(row.command) as string[],
    ports: readPorts(row.ports),
    uses_access_token: row.uses_access_token === 1,
    coming_soon: row.coming_soon === 1,
    recommended: row.recommended === 1,
    registry_private: row.registry_encrypted !== null,
    deactivated_at: row.deactivated_at,
    created_at: row.created_at,
  };
}
