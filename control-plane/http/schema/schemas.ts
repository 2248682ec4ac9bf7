import { Type, type TOptional, type TSchema } from 'typebox';
import { describeDeprecation, type Deprecation } from './deprecations.js';

/** Further options of a JSON schema, such as `minLength`. */
type Options = Record<string, unknown>;

export function text(description: string, options: Options = {}) {
  return Type.String({ description, ...options });
}

/** The field of a schema with a pattern that says in words what the pattern allows: it completes "must". */
export const ALLOWED = 'x-allowed';

/** Text of one form. `allowed` completes "must" in the refusal of any other text, such as `be a time: HH:MM`. */
export function formed(description: string, pattern: string, allowed: string, options: Options = {}) {
  return text(description, { ...options, pattern, [ALLOWED]: allowed });
}

export function integer(description: string, options: Options = {}) {
  return Type.Integer({ description, ...options });
}

export function flag(description: string, options: Options = {}) {
  return Type.Boolean({ description, ...options });
}

export function uuid(description: string) {
  return text(description, { format: 'uuid' });
}

/** A time in ISO 8601, in UTC, with milliseconds. */
export function timestamp(description: string) {
  return text(description, { pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$' });
}

/** An integer amount in micro-dollars. */
export function micro(description: string, options: Options = {}) {
  return integer(`${description}, in micro-dollars`, options);
}

/** One of a fixed list of words. */
export function choice<const Words extends string[]>(
  words: readonly [...Words],
  description: string,
  options: Options = {},
) {
  return Type.Enum([...words], { type: 'string', description, ...options });
}

export function list<T extends TSchema>(schema: T, description: string, options: Options = {}) {
  return Type.Array(schema, { description, ...options });
}

/** Returns the schema with another description, for one use of it. */
export function meaning<T extends TSchema>(schema: T, description: string): T {
  return Type.With(schema, { description }) as unknown as T;
}

/**
 * Marks a field or parameter as deprecated in the document. Its schema must have no title, which would mark the other uses, too. Nothing is
 * sent with answers: the headers speak of whole routes.
 */
export function deprecated<T extends TSchema>(schema: T & { description?: string }, deprecation: Deprecation): T {
  return Type.With(schema, describeDeprecation(deprecation, schema.description)) as unknown as T;
}

/**
 * Text without control characters and without characters that reorder the text around them. The validator also refuses names of which
 * people do not see all ({@link isSeen}): in a pattern, that would not work in every language of clients.
 */
export const PLAIN_TEXT = '^[^\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]*$';

/** A name that is shown to people. It cannot imitate another name or break the line that contains it. */
export function nameOf(description: string, maxLength: number, options: Options = {}) {
  const allowed =
    'not contain control characters, invisible characters, or characters that change the direction of text';
  return formed(description, PLAIN_TEXT, allowed, { minLength: 1, maxLength, ...options });
}

/** The schema or null, with the schema's description. */
export function nullable<T extends TSchema>(schema: T) {
  const { description, ...bare } = schema as T & { description?: string };
  return Type.Union([bare as unknown as T, Type.Null()], description === undefined ? {} : { description });
}

/** A request body in which unknown fields are errors. */
export function body<T extends Record<string, TSchema>>(properties: T) {
  return Type.Object(properties, { additionalProperties: false });
}

/** Makes properties optional. */
export function optional<T extends Record<string, TSchema>>(properties: T): { [K in keyof T]: TOptional<T[K]> } {
  const entries = Object.entries(properties).map(([name, schema]) => [name, Type.Optional(schema)]);
  return Object.fromEntries(entries) as { [K in keyof T]: TOptional<T[K]> };
}

export function iso(time: number): string {
  return new Date(time).toISOString();
}

export function isoOrNull(time: number | null): string | null {
  return time === null ? null : iso(time);
}

/** The header with which a client can safely repeat a request. */
export const IdempotencyHeaders = Type.Object(
  optional({
    'idempotency-key': text('Requests with the same key within 24 hours count as one request', {
      minLength: 1,
      maxLength: 255,
    }),
  }),
);
