import type { FastifyReply } from 'fastify';
import { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ListOrPage, Page, PageRequest } from '../../services/system/pages.js';
import { viewPage } from './routes.js';

/** Rows that are read and sent in one turn of the event loop: a few milliseconds of work. */
const SLICE_ROWS = 200;

/**
 * Answers a list that the contract promises whole: one page if the request asks for one, otherwise every item. A long list is read
 * and sent in slices, each in a transaction of its own, and other requests are answered in between. So each item, not the list, is
 * of one moment; items that are newer than the first slice are left out.
 */
export function answerList<Query extends PageRequest, Item, View>(
  reply: FastifyReply,
  query: Query,
  read: (query: Query) => Page<Item>,
  view: (item: Item) => View,
): ListOrPage<View> {
  if (query.limit !== undefined || query.cursor !== undefined) return viewPage(read(query), view);
  const slice = (cursor: Pick<PageRequest, 'cursor'>) => read({ ...query, limit: SLICE_ROWS, ...cursor });
  const first = slice({});
  if (first.next_cursor === null) return { items: first.items.map(view) };
  void reply.type('application/json; charset=utf-8');
  const serialize = (items: readonly Item[]) => reply.serialize({ items: items.map(view) }) as string;
  return Readable.from(inSlices(first, (cursor) => slice({ cursor }), serialize)) as never;
}

const BEFORE = '{"items":[';
const AFTER = ']}';

/** Yields the text of `{"items": [...]}`, a slice in each turn of the event loop. */
async function* inSlices<Item>(
  first: Page<Item>,
  after: (cursor: string) => Page<Item>,
  serialize: (items: readonly Item[]) => string,
): AsyncGenerator<string> {
  yield BEFORE;
  for (let page = first; ; page = after(page.next_cursor)) {
    yield (page === first ? '' : ',') + serialize(page.items).slice(BEFORE.length, -AFTER.length);
    if (page.next_cursor === null) break;
    await nextTurn();
  }
  yield AFTER;
}
