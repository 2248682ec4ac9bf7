import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import { Type, type TSchema } from 'typebox';
import type { Page } from '../../services/system/pages.js';
import type { Platform } from '../../services/system/platform.js';
import { integer, list, nullable, optional, text } from '../schemas.js';

/** Registers the routes of one resource. */
export type Routes = (
  app: FastifyInstance<
    RawServerDefault,
    RawRequestDefaultExpression,
    RawReplyDefaultExpression,
    FastifyBaseLogger,
    TypeBoxTypeProvider
  >,
  platform: Platform,
) => void;

/** An id in a path is any text: a malformed one is unknown, like any other that names nothing. */
export function idOf(what: string) {
  return Type.Object({ id: text(`The id of the ${what}`) });
}

export const NoContent = Type.Null();

/** Query parameters of a list that is read in pages. */
export const pageFields = {
  ...optional({
    limit: integer('How many to return at most', { minimum: 1, maximum: 500 }),
    cursor: text('`next_cursor` of the page before', { pattern: '^[A-Za-z0-9_-]{1,1024}$' }),
  }),
};
export const PageQuery = Type.Object(pageFields);

/** A page as the API shows it. */
export function viewPage<Item, View>({ items, ...rest }: Page<Item>, view: (item: Item) => View) {
  return { ...rest, items: items.map(view) };
}

/** A list that has `next_cursor` where a page was asked for: null on the last one. */
export function page<T extends TSchema>(schema: T) {
  return Type.Object({
    items: list(schema, 'The page; the whole list where neither `limit` nor `cursor` was given'),
    ...optional({
      next_cursor: nullable(
        text('The `cursor` of the next page; null on the last; absent where no page was asked for'),
      ),
    }),
  });
}
