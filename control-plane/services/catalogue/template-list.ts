import type { Caller } from '../../domain/caller.js';
import type { Row } from '../../store/schema.js';
import { listOf, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { firstBytesOf, readCursor, writeCursor, type PageRequest, type Slice } from '../system/pages.js';
import type { Core } from '../system/platform.js';
import type { TemplateDetails, TemplateMode } from './stored-template.js';
import { asSeenBy, describeTemplate, publishersOf } from './templates.js';

export interface TemplateFilter {
  tab?: 'recommended' | 'system' | 'public' | 'organization' | 'own';
  mode?: TemplateMode;
  /** Words that name, description or image must all contain, in upper or lower case. */
  words?: string;
}

/** Most rows that one slice of a search looks at. */
const SLICE_ROWS = 200;

/**
 * Returns the next active templates that the caller's organization can see, by name, without readme and onstart, which can be long;
 * without the values of environments if the caller may not see secrets. The list goes on while there is a `next_cursor`: a slice can have
 * fewer than the limit, because it ends once its templates have a megabyte, and one of a search looks at 200 templates at most.
 */
export function templatesSlice(
  core: Core,
  caller: Caller,
  { limit = SLICE_ROWS, cursor, ...filter }: TemplateFilter & PageRequest,
): Slice<TemplateDetails> {
  return core.store.transact((tx) => {
    const isSearch = filter.tab === 'recommended' || filter.mode !== undefined || filter.words !== undefined;
    const most = isSearch ? SLICE_ROWS : limit + 1;
    const after = cursor === undefined ? undefined : readCursor(cursor, { name: 'asc', id: 'asc' });
    const rows: Listed[] = tx.all(listed(sourcesOf(caller, filter.tab), after, most));
    const found = rows.filter((row) => matches(row, filter));
    const shown = firstBytesOf(found.slice(0, limit));
    const last = found.length > shown.length ? shown.at(-1) : rows.length === most ? rows.at(-1) : undefined;
    const items = wholeOf(tx, shown);
    const publishers = publishersOf(tx, items);
    return {
      items: items.map((row) => asSeenBy(caller, row, describeTemplate(core, row, publishers.get(row.id)))),
      next_cursor: last ? writeCursor([last.name, last.id]) : null,
      bytes: shown.reduce((sum, { bytes }) => sum + bytes, 0),
    };
  });
}

/** What a search looks at. It reads no more of the templates that it does not find. */
const LOOKED_AT = ['id', 'name', 'description', 'image', 'mode', 'recommended'] as const;
/** The bytes of what a list shows, if it can be long. SQLite finds them in the head of a row, without reading the rest. */
const LISTED_BYTES = sql<number>`(octet_length(description) + octet_length(env_encrypted) + octet_length(command) + octet_length(ports))`;
type Listed = Pick<Row<'templates'>, (typeof LOOKED_AT)[number]> & { bytes: number };

const COLUMNS = [
  'id',
  'hash_id',
  'organization_id',
  'visibility',
  'name',
  'description',
  'kind',
  'mode',
  'image',
  'arch',
  'cuda_max',
  'cuda_min',
  'ssh_user',
  'env_encrypted',
  'registry_encrypted',
  'command',
  'ports',
  'uses_access_token',
  'coming_soon',
  'recommended',
  'created_at',
  'deactivated_at',
] as const;
const LEFT_OUT = [sql<null>`NULL`.as('readme'), sql<null>`NULL`.as('onstart')] as const;

/** The rows of one index: templates of one visibility, of one organization or of all. */
interface Source {
  visibility: Row<'templates'>['visibility'];
  organizationId?: string;
}

function sourcesOf({ organizationId }: Caller, tab: TemplateFilter['tab']): [Source, ...Source[]] {
  const own: Source = { visibility: 'organization', organizationId };
  if (tab === 'organization') return [own];
  if (tab === 'own') return [own, { visibility: 'public', organizationId }];
  if (tab === 'public') return [{ visibility: 'public' }];
  // Only operators recommend, and only their own.
  if (tab !== undefined) return [{ visibility: 'system' }];
  return [{ visibility: 'system' }, { visibility: 'public' }, own];
}

/** Selects the next rows of some sources by name. SQLite reads each source in the order of its index and merges them. */
function listed(
  [first, ...others]: [Source, ...Source[]],
  after: readonly (string | number)[] | undefined,
  most: number,
) {
  const rowsOf = ({ visibility, organizationId }: Source) => {
    const shared = visibility !== 'organization' && organizationId === undefined;
    const looked = query.selectFrom('templates').select(LOOKED_AT).select(LISTED_BYTES.as('bytes'));
    let rows = looked.where('deactivated_at', 'is', null);
    // For the index of what all can see.
    if (shared) rows = rows.where('visibility', '<>', sql.lit('organization'));
    if (organizationId !== undefined) rows = rows.where('organization_id', '=', organizationId);
    rows = rows.where('visibility', '=', sql.lit(visibility));
    return after ? rows.where(sql<boolean>`(name, id) > (${after[0]}, ${after[1]})`) : rows;
  };
  const all = others.reduce((some, source) => some.unionAll(rowsOf(source)), rowsOf(first));
  return all.orderBy('name').orderBy('id').limit(most);
}

/** Returns the templates of some rows, in their order, but for what no list shows. */
function wholeOf(tx: Tx, rows: readonly Listed[]): Row<'templates'>[] {
  const ids = rows.map(({ id }) => id);
  const all = query.selectFrom('templates').select(COLUMNS).select(LEFT_OUT).where('id', 'in', listOf(ids));
  const templates = new Map(tx.all(all).map((row) => [row.id, row]));
  return ids.flatMap((id) => templates.get(id) ?? []);
}

function matches(row: Listed, { tab, mode, words = '' }: TemplateFilter): boolean {
  if (tab === 'recommended' && row.recommended === 0) return false;
  if (mode !== undefined && !(JSON.parse(row.mode) as TemplateMode[]).includes(mode)) return false;
  const text = `${row.name} ${row.description} ${row.image}`.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
