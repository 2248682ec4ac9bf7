import { Refusal } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';

/**
 * Most that the active templates of an organization have together: several of the longest, or 80 KiB each of as many as there can be. The
 * fields of one template have limits of their own, which let it have two megabytes.
 */
export const MOST_BYTES = 16 * 1024 * 1024;

/** Most that its public templates have together: they are in everybody's list. */
export const MOST_PUBLIC_BYTES = 256 * 1024;

/** The bytes of what a template can have much of. SQLite finds them in the head of a row, without reading the rest. */
const STORED_BYTES = sql<number>`(octet_length(description) + ifnull(octet_length(readme), 0)
  + octet_length(env_encrypted) + ifnull(octet_length(registry_encrypted), 0)
  + ifnull(octet_length(onstart), 0) + octet_length(command) + octet_length(ports))`;

type Template = Row<'templates'>;

/**
 * Refuses with LIMIT_REACHED a template that would make those of its organization longer than they may be, or its public ones. `before` is
 * the template that is changed: what gets no longer, and was public already if it is now, is never refused. Operators may make system
 * templates as long as they like.
 */
export function checkRoom(tx: Tx, template: Template, before?: Template): void {
  const { id, organization_id, visibility } = template;
  if (organization_id === null) return;
  const bytes = bytesOf(template);
  const isLonger = before === undefined || bytes > bytesOf(before);
  const others = query
    .selectFrom('templates')
    .select(sql<number | null>`sum(${STORED_BYTES})`.as('bytes'))
    .where('organization_id', '=', organization_id)
    .where('deactivated_at', 'is', null)
    .where('id', '<>', id);
  if (isLonger && bytes + (tx.get(others)?.bytes ?? 0) > MOST_BYTES) throw tooLong('', MOST_BYTES);
  if (visibility !== 'public' || (!isLonger && before.visibility === 'public')) return;
  const published = others.where('visibility', '=', 'public');
  if (bytes + (tx.get(published)?.bytes ?? 0) > MOST_PUBLIC_BYTES) throw tooLong('public ', MOST_PUBLIC_BYTES);
}

function tooLong(which: '' | 'public ', limit: number): Refusal {
  return new Refusal(
    'LIMIT_REACHED',
    `the ${which}templates of an organization can have ${limit} bytes together; shorten or deactivate one first`,
    { limit },
  );
}

/** Returns the same bytes of a row that is at hand. */
function bytesOf(template: Template): number {
  const { description, readme, env_encrypted, registry_encrypted, onstart, command, ports } = template;
  return [description, readme, env_encrypted, registry_encrypted, onstart, command, ports].reduce(
    (sum, part) => sum + (part === null ? 0 : Buffer.byteLength(part)),
    0,
  );
}
