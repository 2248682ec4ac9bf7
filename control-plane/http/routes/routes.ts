import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import { Type } from 'typebox';
import type { Platform } from '../../services/platform.js';

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
export const IdParams = Type.Object({ id: Type.String() });

export const NoContent = Type.Null();
