import { Type, type TOptional, type TSchema } from 'typebox';

export const Timestamp = Type.String({
  description: 'ISO 8601, UTC, with milliseconds',
  pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$',
});
export const Uuid = Type.String({ format: 'uuid' });
export const Micro = Type.Integer({ description: 'micro-dollars' });

/** Neither control characters, nor those that reorder the text around them. */
const PLAIN_TEXT = '^[^\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]*$';

/** What people are shown as the name of something: it cannot pass for another, or break the line that it stands in. */
export function nameOf(maxLength: number, minLength = 1) {
  return Type.String({ minLength, maxLength, pattern: PLAIN_TEXT });
}

export function nullable<T extends TSchema>(schema: T) {
  return Type.Union([schema, Type.Null()]);
}

/** A request body: unknown fields are errors. */
export function body<T extends Record<string, TSchema>>(properties: T) {
  return Type.Object(properties, { additionalProperties: false });
}

/** Properties that may be left out. */
export function optional<T extends Record<string, TSchema>>(properties: T): { [K in keyof T]: TOptional<T[K]> } {
  const entries = Object.entries(properties).map(([name, schema]) => [name, Type.Optional(schema)]);
  return Object.fromEntries(entries) as { [K in keyof T]: TOptional<T[K]> };
}

export function items<T extends TSchema>(schema: T) {
  return Type.Object({ items: Type.Array(schema) });
}

export function iso(time: number): string {
  return new Date(time).toISOString();
}

export function isoOrNull(time: number | null): string | null {
  return time === null ? null : iso(time);
}

/** What makes repetitions of a request one. */
export const IdempotencyHeaders = Type.Object({
  'idempotency-key': Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
});
