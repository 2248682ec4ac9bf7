import type { FastifyReply, FastifyRequest } from 'fastify';
import { Readable } from 'node:stream';
import { SLICE_BYTES, type ListOrPage, type Page, type PageRequest, type Slice } from '../../services/system/pages.js';
import { pageText, sendBody, type Text } from '../answers/remembered-bodies.js';
import { viewPage } from './routes.js';

/** Rows that are read and sent in one turn of the event loop: a few milliseconds of work. */
const SLICE_ROWS = 200;

/**
 * Answers a list that the contract promises whole: one page if the request asks for one, otherwise every item. A long list is read
 * and sent in slices, each in a transaction of its own, and other requests are answered in between. So each item, not the list, is
 * of one moment; items that are newer than the first slice are left out. The answer ends with its credential.
 */
export function answerList<Query extends PageRequest, Item, View>(
  reply: FastifyReply,
  query: Query,
  read: (query: Query) => Page<Item>,
  view: (item: Item) => View,
): ListOrPage<View> {
  if (!isWhole(query)) return viewPage(read(query), view);
  const first = read({ ...query, limit: SLICE_ROWS });
  if (first.next_cursor === null) return { items: first.items.map(view) };
  return sendSlices(reply, query, first, read, (items) =>
    (reply.serialize({ items: items.map(view) }) as string).slice('{"items":['.length, -']}'.length),
  );
}

/** Answers a list like {@link answerList}, whose service reads it in slices: see {@link fullPage}. */
export async function answerSlices<Query extends PageRequest, Item, View>(
  reply: FastifyReply,
  query: Query,
  read: (query: Query) => Slice<Item>,
  view: (item: Item) => View,
): Promise<ListOrPage<View>> {
  return isWhole(query) ? answerList(reply, query, read, view) : viewPage(await fullPage(reply, query, read), view);
}

/** Answers a list like {@link answerList}, with an ETag unless it is long. The service remembers its pages and items. */
export function answerRememberedList<Query extends PageRequest, Item>(
  { headers, query }: Pick<FastifyRequest, 'headers'> & { query: Query },
  reply: FastifyReply,
  read: (query: Query) => Page<Item>,
  text: (item: Item) => Text,
): never {
  const whole = isWhole(query);
  const page = read(whole ? { ...query, limit: SLICE_ROWS } : query);
  if (whole && page.next_cursor !== null)
    return sendSlices(reply, query, page, read, (items) => items.map((item) => text(item).json).join(','));
  const { items } = page;
  return sendBody(headers, reply, page, () => pageText(whole ? { items } : page, text), whole ? 'whole' : 'page');
}

const DEFAULT_LIMIT = 100;

/**
 * Returns a page of a list that a service reads in slices, which can be shorter than their limit although the list goes on: each in a
 * turn of the event loop of its own, until the page is full, too long to be sent at once, or the list ends.
 */
async function fullPage<Query extends PageRequest, Item>(
  reply: FastifyReply,
  query: Query,
  read: (query: Query) => Slice<Item>,
): Promise<Page<Item>> {
  const { limit = DEFAULT_LIMIT } = query;
  const items: Item[] = [];
  let bytes = 0;
  for (
    let page = read({ ...query, limit });
    ;
    page = read({ ...query, limit: limit - items.length, cursor: page.next_cursor })
  ) {
    items.push(...page.items);
    bytes += page.bytes ?? 0;
    const isFull = items.length === limit || bytes >= SLICE_BYTES;
    if (isFull || page.next_cursor === null) return { items, next_cursor: page.next_cursor };
    await reply.server.lists.turn(reply);
  }
}

/**
 * Throws if the caller may not have the rest of an answer that has begun, because the credential has ended meanwhile. The answer is cut
 * off: the client sees that it is incomplete.
 */
export function checkStillAdmitted({ request }: FastifyReply): void {
  if (!request.isStillAdmitted()) throw new Error('the credential of the request has ended; the rest is not sent');
}

function isWhole({ limit, cursor }: PageRequest): boolean {
  return limit === undefined && cursor === undefined;
}

/** Sends a list that begins with the page `first`, the text of each page by `textOf`. */
function sendSlices<Query extends PageRequest, Item>(
  reply: FastifyReply,
  query: Query,
  first: Page<Item>,
  read: (query: Query) => Page<Item>,
  textOf: (items: readonly Item[]) => string,
): never {
  const slice = (from: PageRequest) => {
    checkStillAdmitted(reply);
    return read({ ...query, limit: SLICE_ROWS, ...from });
  };
  return sendLong(reply, (hasWaited) => {
    void reply.type('application/json; charset=utf-8');
    // The first slice is not kept while the list waits: many can wait.
    return Readable.from(inSlices(reply, hasWaited ? slice({}) : first, (cursor) => slice({ cursor }), textOf));
  });
}

/** Sends an answer of more than one piece once there is a place for it. `make` is told whether it has waited for that. */
export function sendLong(reply: FastifyReply, make: (hasWaited: boolean) => Readable): never {
  const send = (hasWaited: boolean) => {
    const stream = make(hasWaited);
    // An answer to HEAD ends before its stream.
    reply.raw.once('close', () => stream.destroy());
    return stream;
  };
  const { lists } = reply.server;
  const place = lists.begin(reply);
  if (place === undefined) return send(false) as never;
  return place.then(() => lists.turn(reply)).then(() => send(true)) as never;
}

/** Yields the text of `{"items": [...]}`, a slice in each turn of the event loop. */
async function* inSlices<Item>(
  reply: FastifyReply,
  first: Page<Item>,
  after: (cursor: string) => Page<Item>,
  textOf: (items: readonly Item[]) => string,
): AsyncGenerator<string> {
  yield '{"items":[';
  let separator = '';
  for (let page = first; ; page = after(page.next_cursor)) {
    // A slice of a list that is searched can be empty although the list goes on.
    if (page.items.length > 0) {
      yield separator + textOf(page.items);
      separator = ',';
    }
    if (page.next_cursor === null) break;
    await reply.server.lists.turn(reply);
  }
  yield ']}';
}
