import { stringify } from 'csv-stringify';
import type { FastifyReply } from 'fastify';
import { Readable, pipeline } from 'node:stream';
import type { Page, PageRequest } from '../../services/system/pages.js';
import { checkStillAdmitted, sendLong } from './whole-list.js';

/** Rows that are read and written in one turn of the event loop. */
const PAGE_ROWS = 500;

/**
 * Answers with a list as a CSV file: whole, or as many rows as the query asks for. Reads it in pages, so that a long file does not
 * delay other requests. The first page is read before the response begins, because the request can still be refused there; the file
 * ends with its credential.
 */
export function answerCsv<Query extends PageRequest, Item>(
  reply: FastifyReply,
  query: Query,
  file: { name: string; columns: readonly string[] },
  read: (query: Query) => Page<Item>,
  view: (item: Item) => object,
): never {
  const { limit = Infinity, cursor } = query;
  const pageAt = (left: number, from?: string) =>
    read({ ...query, limit: Math.min(PAGE_ROWS, left), ...(from === undefined ? {} : { cursor: from }) });
  const nextAt = (left: number, from?: string) => {
    checkStillAdmitted(reply);
    return pageAt(left, from);
  };
  const first = pageAt(limit, cursor);
  async function* rows(start: Page<Item>) {
    let left = limit;
    for (let page = start; ; page = nextAt(left, page.next_cursor)) {
      for (const row of page.items) yield view(row);
      left -= page.items.length;
      if (left <= 0 || page.next_cursor === null) return;
      await reply.server.lists.turn(reply);
    }
  }
  const make = (start: Page<Item>) => {
    void reply.type('text/csv; charset=utf-8').header('Content-Disposition', `attachment; filename="${file.name}"`);
    // Text that a person has written must not become a formula in a spreadsheet.
    const cast = { string: withoutFormulas };
    const csv = stringify({ header: true, columns: [...file.columns], escape_formulas: true, cast });
    // A later error only aborts the response: the client sees that it is incomplete.
    pipeline(Readable.from(rows(start)), csv, () => {});
    return csv;
  };
  if (first.next_cursor === null || first.items.length >= limit) return make(first) as never;
  return sendLong(reply, (hasWaited) => make(hasWaited ? nextAt(limit, cursor) : first));
}

/** Where a cell can begin within a field, and what begins a formula there. */
const INNER_FORMULAS = /(^ +|[;\t\r\n] *)([=+\-@\uFF1D\uFF0B\uFF0D\uFF20])/g;

/**
 * Writes `'` before what would be a formula where a spreadsheet separates cells by semicolons or tabs, as it does in many countries: it
 * knows quotes only at the beginning of a cell. The beginning of a field is the library's.
 */
function withoutFormulas(text: string): string {
  return text.replace(INNER_FORMULAS, "$1'$2");
}
