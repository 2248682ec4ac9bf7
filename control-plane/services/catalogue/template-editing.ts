import { validatePorts } from '../../domain/catalogue/template-port.js';
import { createHash } from 'node:crypto';
import { parseImageReference } from '../../../shared/image-reference.js';
import { actorOf, anOperator, type Act, type Actor } from '../../domain/act.js';
import type { Caller, Operator } from '../../domain/caller.js';
import { ACCESS_TOKEN_PLACEHOLDER } from '../../domain/instances/environment.js';
import { isNewerVersion } from '../../domain/machines/machine.js';
import { Refusal, invalidField } from '../../domain/refusal.js';
import { lookOf } from '../../domain/catalogue/template-name.js';
import type { Row } from '../../store/schema.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordAct } from '../system/acts.js';
import { recordAudit } from '../system/audit.js';
import { checkLimit } from '../system/row-limits.js';
import type { Core } from '../system/platform.js';
import { endTemplate } from './ended-templates.js';
import { checkRoom } from './template-room.js';
import {
  describeTemplate,
  describeWithPublisher,
  findTemplate,
  type RegistryCredential,
  type TemplateDetails,
} from './templates.js';
import { openEnvironment, openRegistry } from './stored-template.js';

/** The fields of a template that its author sets; the others are derived. */
export type TemplateContent = Omit<
  TemplateDetails,
  'id' | 'hash_id' | 'publisher' | 'uses_access_token' | 'registry_private' | 'deactivated_at' | 'created_at'
> & { registry: RegistryCredential | null };

/** The content of a new template; absent fields get their defaults. */
export type NewTemplate = Partial<TemplateContent> & Pick<TemplateContent, 'name' | 'image'>;

const DEFAULTS: Omit<TemplateContent, 'name' | 'image'> = {
  description: '',
  readme: null,
  kind: 'container',
  mode: ['ssh'],
  arch: 'x86_64',
  cuda_max: null,
  cuda_min: null,
  ssh_user: 'root',
  env: [],
  onstart: null,
  command: [],
  ports: [],
  coming_soon: false,
  recommended: false,
  registry: null,
  visibility: 'organization',
};

/** The owner whose templates are edited: an organization, or, for an operator, the system. */
type Owner = { organizationId: string; by: Actor } | { organizationId: null; operator: Operator };

export function systemBy(operator: Operator): Owner {
  return { organizationId: null, operator };
}

export function ownOf(caller: Caller): Owner {
  return { organizationId: caller.organizationId, by: actorOf(caller) };
}

/** Creates a template. Refuses with VALIDATION_FAILED and LIMIT_REACHED. */
export function createTemplate(core: Core, owner: Owner, request: NewTemplate): TemplateDetails {
  return core.store.transact((tx) => insert(core, tx, owner, 'template.create', { ...DEFAULTS, ...request }));
}

/**
 * Changes the given fields of a template; instances keep the template of their deploy. A secret whose value is null keeps its
 * value, because reads show it as null. Refuses with TEMPLATE_NOT_FOUND, and like {@link createTemplate}.
 */
export function updateTemplate(
  core: Core,
  owner: Owner,
  id: string,
  changes: Partial<TemplateContent>,
): TemplateDetails {
  return core.store.transact((tx) => {
    const row = findOwn(tx, owner, id);
    const before = contentOf(core, row);
    const secrets = new Map(before.env.map(({ key, value }) => [key, value]));
    const env = (changes.env ?? before.env).map((entry) =>
      entry.secret && entry.value === null ? { ...entry, value: secrets.get(entry.key) ?? null } : entry,
    );
    const registry = isSameRegistry(before.image, changes.image) ? before.registry : null;
    const columns = columnsOf(core, checked(tx, owner, { ...before, registry, ...changes, env }, id));
    const changed = { ...row, ...columns };
    checkRoom(tx, changed, row);
    tx.run(query.updateTable('templates').set(columns).where('id', '=', id));
    audit(tx, owner, 'template.update', id);
    return describeWithPublisher(core, tx, changed);
  });
}

/**
 * Tells whether the registry stays the same. A stored password must not be sent to a registry that a later editor has entered.
 */
function isSameRegistry(before: string, after: string | undefined): boolean {
  return after === undefined || parseImageReference(before)?.registry === parseImageReference(after)?.registry;
}

/**
 * Deactivates a template: nobody can deploy it any more, its instances go on, and what it has run is forgotten. An operator can
 * deactivate the template of any organization. Refuses with TEMPLATE_NOT_FOUND.
 */
export function deactivateTemplate(core: Core, owner: Owner, id: string): void {
  core.store.transact((tx) => {
    const { organization_id } = 'operator' in owner ? findActive(tx, id) : findOwn(tx, owner, id);
    endTemplate(core, tx, id, tx.now);
    audit(tx, owner, 'template.deactivate', id);
    if ('operator' in owner && organization_id !== null)
      recordAct(tx, organization_id, anOperator(null), 'template.deactivate', `templates/${id}`);
  });
}

/**
 * Copies a template for the caller's organization. The copy gets the registry password only if that organization owns the template.
 * Refuses with TEMPLATE_NOT_FOUND, and like {@link createTemplate}.
 */
export function duplicateTemplate(core: Core, caller: Caller, id: string): TemplateDetails {
  return core.store.transact((tx) => {
    const row = findTemplate(tx, caller.organizationId, id);
    const content = contentOf(core, row);
    const registry = row.organization_id === caller.organizationId ? content.registry : null;
    const copy = { ...content, registry, recommended: false, visibility: 'organization' as const };
    return insert(core, tx, ownOf(caller), 'template.duplicate', copy);
  });
}

function insert(core: Core, tx: Tx, owner: Owner, action: TemplateAct, content: TemplateContent): TemplateDetails {
  if (owner.organizationId !== null) checkLimit(tx, 'templates', activeOf(owner.organizationId));
  const row: Row<'templates'> = {
    id: tx.id(),
    organization_id: owner.organizationId,
    created_at: tx.now,
    deactivated_at: null,
    ...columnsOf(core, checked(tx, owner, content)),
  };
  checkRoom(tx, row);
  tx.run(query.insertInto('templates').values(row));
  audit(tx, owner, action, row.id);
  return describeWithPublisher(core, tx, row);
}

/**
 * Returns the content with its visibility. Refuses a template that cannot run, and a public one with secret values, because everybody
 * who deploys a template can read its environment. `id` is the template that is changed; empty for a new one.
 */
function checked(tx: Tx, owner: Owner, content: TemplateContent, id = ''): TemplateContent {
  if (envSizeOf(content) > MAX_ENV_CHARS) throw invalidField('env', `has more than ${MAX_ENV_CHARS} characters in all`);
  if (!parseImageReference(content.image))
    throw invalidField('image', 'must be an image reference such as registry.example.com/name:tag');
  const fault = validatePorts(content.ports);
  if (fault !== undefined) throw invalidField('ports', fault);
  const { cuda_min: least, cuda_max: most } = content;
  if (least !== null && most !== null && isNewerVersion(least, most))
    throw invalidField('cuda_min', `must not be newer than cuda_max, which is ${most}`);
  if (content.kind === 'vm' && content.command.length > 0)
    throw invalidField('command', 'a virtual machine boots from its disk and takes no command: use onstart');
  if (owner.organizationId === null) return { ...content, visibility: 'system' };
  if (content.visibility !== 'public') return content;
  if (content.env.some(({ secret, value }) => secret && value !== null)) {
    throw invalidField('visibility', 'a template with secret values cannot be public: remove them from env');
  }
  if (imitatesSystem(tx, content.name))
    throw invalidField('name', 'a public template must not have the name of a system template; choose another name');
  const others = activeOf(owner.organizationId).where('visibility', '=', 'public').where('id', '<>', id);
  checkLimit(tx, 'publicTemplates', others);
  return content;
}

const MAX_ENV_CHARS = 64 * 1024;

function envSizeOf({ env }: TemplateContent): number {
  return env.reduce((sum, { key, value }) => sum + key.length + (value?.length ?? 0), 0);
}

function activeOf(organizationId: string) {
  return query
    .selectFrom('templates')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('deactivated_at', 'is', null);
}

type TemplateAct = Extract<Act, `template.${string}`>;

function audit(tx: Tx, owner: Owner, action: TemplateAct, id: string): void {
  if ('operator' in owner) recordAudit(tx, owner.operator, action, id);
  else recordAct(tx, owner.organizationId, owner.by, action, `templates/${id}`);
}

function findOwn(tx: Tx, owner: Owner, id: string): Row<'templates'> {
  const row = findActive(tx, id);
  if (row.organization_id !== owner.organizationId) throw notYours();
  return row;
}

function findActive(tx: Tx, id: string): Row<'templates'> {
  const all = query.selectFrom('templates').selectAll().where('id', '=', id);
  const row = tx.get(all.where('deactivated_at', 'is', null));
  if (!row) throw notYours();
  return row;
}

function notYours(): Refusal {
  return new Refusal('TEMPLATE_NOT_FOUND', 'you own no active template with this id');
}

/**
 * Tells whether a name looks like that of a system template: renters must not mistake a stranger's template for the operator's.
 */
function imitatesSystem(tx: Tx, name: string): boolean {
  const active = query.selectFrom('templates').select('name').where('deactivated_at', 'is', null);
  const look = lookOf(name);
  return tx.all(active.where('visibility', '=', 'system')).some((system) => lookOf(system.name) === look);
}

function contentOf(core: Core, row: Row<'templates'>): TemplateContent {
  const { encryption } = core;
  const { env_encrypted, registry_encrypted } = row;
  return {
    ...describeTemplate(core, row),
    env: openEnvironment(encryption, env_encrypted),
    registry: openRegistry(encryption, registry_encrypted) ?? null,
  };
}

function columnsOf({ encryption }: Core, content: TemplateContent) {
  const { name, description, readme, kind, image, arch, cuda_max, cuda_min, ssh_user, onstart, visibility } = content;
  return {
    name,
    description,
    readme,
    kind,
    image,
    arch,
    cuda_max,
    cuda_min,
    ssh_user,
    onstart,
    visibility,
    hash_id: hashOf(content),
    mode: JSON.stringify(content.mode),
    command: JSON.stringify(content.command),
    ports: JSON.stringify(content.ports),
    env_encrypted: encryption.encrypt('template.env', content.env),
    registry_encrypted: content.registry && encryption.encrypt('template.registry', content.registry),
    uses_access_token: flag(usesAccessToken(content)),
    coming_soon: flag(content.coming_soon),
    recommended: flag(content.recommended),
  };
}

function flag(value: boolean): 0 | 1 {
  return value ? 1 : 0;
}

/** Returns the `hash_id`: the same for copies of a template, and another one if anything changes that it runs. */
function hashOf(content: TemplateContent): string {
  const { image, arch, kind, mode, ssh_user, onstart, command, ports } = content;
  const env = content.env.map(({ key, value, secret }) => [key, secret ? null : value]);
  return createHash('sha256')
    .update(JSON.stringify([kind, image, arch, mode, ssh_user, env, onstart, command, ports]))
    .digest('hex');
}

function usesAccessToken({ mode, ports, env }: TemplateContent): boolean {
  return (
    mode.includes('jupyter') ||
    ports.some((port) => port.guard !== 'none') ||
    env.some(({ value }) => value?.includes(ACCESS_TOKEN_PLACEHOLDER))
  );
}
