import { ALLOWED } from './schemas.js';

interface Allowed {
  [ALLOWED]?: string;
}

/** An error of the schema validator. */
export interface SchemaError {
  instancePath: string;
  keyword: string;
  params: Record<string, unknown>;
  /** The schema that the value does not fit. */
  parentSchema?: Allowed;
}

/** A keyword of our own: a number in a query string that is not written in plain digits. */
export const PLAIN_DIGITS = 'plainDigits';

/** What a value must be, by the keyword of the schema that it does not fit: each completes "must". */
const WORDS: Readonly<Record<string, (params: Record<string, unknown>) => string>> = {
  type: ({ type }) => `be ${[type].flat().map(kindOf).join(' or ')}`,
  [PLAIN_DIGITS]: () => 'be a whole number in plain digits',
  minLength: ({ limit }) => (limit === 1 ? 'not be empty' : `have at least ${counted(limit, 'character')}`),
  maxLength: ({ limit }) => `have at most ${counted(limit, 'character')}`,
  minimum: ({ limit }) => `be at least ${String(limit)}`,
  maximum: ({ limit }) => `be at most ${String(limit)}`,
  minItems: ({ limit }) => `have at least ${counted(limit, 'entry', 'entries')}`,
  maxItems: ({ limit }) => `have at most ${counted(limit, 'entry', 'entries')}`,
  uniqueItems: () => 'not have the same entry twice',
  enum: ({ allowedValues }) => `be ${listed([allowedValues].flat().map(String))}`,
  const: ({ allowedValue }) => `be ${String(allowedValue)}`,
  format: ({ format }) => `be ${FORMATS[String(format)] ?? String(format)}`,
};

const KINDS: Readonly<Record<string, string>> = {
  array: 'a list',
  boolean: 'true or false',
  integer: 'a whole number',
  null: 'null',
  number: 'a number',
  object: 'an object',
  string: 'text',
};

const FORMATS: Readonly<Record<string, string>> = {
  date: 'a day, such as 2026-01-31',
  'date-time': 'a time with its zone, such as 2026-01-31T12:00:00Z',
  email: 'an email address',
  uuid: 'an id: a UUID',
};

/** Says in words what a value must be that does not fit its schema. No word of it is the schema's: people read it. */
export function wordsOf({ keyword, params, parentSchema }: SchemaError): string {
  const allowed = keyword === 'pattern' ? parentSchema?.[ALLOWED] : WORDS[keyword]?.(params);
  return allowed === undefined ? 'is not valid' : `must ${allowed}`;
}

/** Throws if a schema has a pattern, and not in words what it allows. */
export function checkPatterns(route: string, schema: unknown): void {
  if (typeof schema !== 'object' || schema === null) return;
  const { pattern, [ALLOWED]: allowed } = schema as Allowed & { pattern?: unknown };
  if (typeof pattern === 'string' && allowed === undefined)
    throw new Error(`${route} has the pattern ${pattern}, and no words for people: make its schema with formed()`);
  for (const each of Object.values(schema)) checkPatterns(route, each);
}

function kindOf(type: unknown): string {
  return KINDS[String(type)] ?? String(type);
}

function counted(count: unknown, one: string, more = `${one}s`): string {
  return `${String(count)} ${count === 1 ? one : more}`;
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`;
}
