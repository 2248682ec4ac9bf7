import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import { Type, type TSchema } from 'typebox';
import type { ListOrPage, Page } from '../../services/system/pages.js';
import type { App } from '../../services/parts/parts.js';
import { formed, integer, list, nullable, optional, text } from '../schema/schemas.js';

/** Registers the routes of one resource. */
export type Routes = (
  app: FastifyInstance<
    RawServerDefault,
    RawRequestDefaultExpression,
    RawReplyDefaultExpression,
    FastifyBaseLogger,
    TypeBoxTypeProvider
  >,
  platform: App,
) => void;

/** Returns the path parameter `id`. It accepts any text, so that a malformed id gets 404 like any other unknown id. */
export function idOf(what: string) {
  return Type.Object({ id: text(`The id of the ${what}`) });
}

export const NoContent = Type.Null();

/** The query parameters of a paged list. */
export const pageFields = {
  ...optional({
    limit: integer('The maximum number of items', { minimum: 1, maximum: 500 }),
    cursor: formed(
      'The `next_cursor` of the previous page',
      '^[A-Za-z0-9_-]{1,1024}$',
      'be the `next_cursor` of a page of this list',
    ),
  }),
};
export const PageQuery = Type.Object(pageFields);

/** Converts a page of rows into the response body, each row with `view`. */
export function viewPage<Item, View>(page: Page<Item>, view: (item: Item) => View): Page<View>;
export function viewPage<Item, View>(page: ListOrPage<Item>, view: (item: Item) => View): ListOrPage<View>;
export function viewPage<Item, View>({ items, ...rest }: ListOrPage<Item>, view: (item: Item) => View) {
  return { ...rest, items: items.map(view) };
}

/** Describes the answer of a list that comes in pages, of 100 items where the request has no `limit`. */
export function page<T extends TSchema>(schema: T) {
  return Type.Object({
    items: list(schema, 'The page: at most `limit` items, or 100 where no `limit` was given'),
    next_cursor: nullable(text('The `cursor` of the next page; null on the last')),
  });
}

/** Describes the answer of a list that is whole where the request asks for no page. */
export function listOrPage<T extends TSchema>(schema: T) {
  return Type.Object({
    items: list(schema, 'The page; the whole list where neither `limit` nor `cursor` was given'),
    ...optional({
      next_cursor: nullable(
        text('The `cursor` of the next page; null on the last; absent where no page was asked for'),
      ),
    }),
  });
}
