import fc, { type Arbitrary } from 'fast-check';
import type { ApiDocument, JsonSchema, Operation } from '../harness/openapi-conformance.js';

/** One request to be sent. Ids are put in when it is sent, out of what earlier answers have named. */
export interface FuzzRequest {
  operation: string;
  method: string;
  path: string;
  query: string;
  headers: Record<string, string>;
  /** Sent as it is. */
  body: string | undefined;
  /** Which of the credentials at hand. */
  credential: number;
}

/** What an id can be the id of: the resource's name in a path, and in a field without its `_id`. */
export const POOLS = [
  'instances',
  'offers',
  'templates',
  'machines',
  'api-keys',
  'ssh-keys',
  'members',
  'invites',
  'organizations',
  'enrollment-tokens',
  'quarantine',
  'by-hash',
] as const;
export type Pool = (typeof POOLS)[number];

export function poolOf(name: string): Pool | undefined {
  const plural = `${name.replace(/_id$/, '').replaceAll('_', '-')}s`;
  return POOLS.find((pool) => pool === name || pool === plural);
}

/** Stands for an id of the pool that an earlier answer has named; the number picks one. */
function knownIdOf(pool: Pool): Arbitrary<string> {
  const digits = (n: number, length: number) => n.toString(16).padStart(length, '0');
  return fc
    .nat({ max: 10_000 })
    .map((pick) => `00000000-0000-4000-8000-${digits(POOLS.indexOf(pool), 4)}${digits(pick, 8)}`);
}
const KNOWN_ID = /00000000-0000-4000-8000-([0-9a-f]{4})([0-9a-f]{8})/g;

/** Puts ids that exist where placeholders stand for one. */
export function withKnownIds(text: string, ids: ReadonlyMap<string, readonly string[]>): string {
  return text.replace(KNOWN_ID, (placeholder, pool: string, pick: string) => {
    const known = ids.get(POOLS[Number.parseInt(pool, 16)] ?? '') ?? [];
    return known[Number.parseInt(pick, 16) % Math.max(known.length, 1)] ?? placeholder;
  });
}

/** Requests to any operation of the document: most as its schemas want them, others spoilt somewhere. */
export function requestsOf(document: ApiDocument): Arbitrary<FuzzRequest> {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => requestOf(document, method.toUpperCase(), path, operation)),
  );
  return fc.oneof(...operations);
}

function requestOf(document: ApiDocument, method: string, path: string, operation: Operation): Arbitrary<FuzzRequest> {
  const generate = new Generator(document);
  const parameters = (operation.parameters ?? []).filter(({ name }) => name !== 'x-org-id');
  const valuesOf = (where: string) =>
    Object.fromEntries(
      parameters
        .filter((parameter) => parameter.in === where)
        .map(({ name, schema }) => [name, where === 'path' ? pathValueOf(path) : generate.spoilt(schema, name)]),
    );
  const schema = operation.requestBody?.content['application/json']?.schema;
  const body = schema ? fc.oneof({ weight: 9, arbitrary: generate.spoilt(schema).map(asJson) }, anyBody) : noBody;
  return fc
    .record({
      path: fc.record(valuesOf('path')),
      query: fc.record(valuesOf('query'), { requiredKeys: [] }),
      header: fc.record(valuesOf('header'), { requiredKeys: [] }),
      organization: fc.oneof({ weight: 20, arbitrary: fc.constant(undefined) }, knownIdOf('organizations')),
      body,
      credential: fc.nat({ max: 1_000 }),
    })
    .map((drawn) => {
      const query = Object.entries(drawn.query).map(([name, value]): [string, string] => [name, asText(value)]);
      const headers = Object.entries(drawn.header).map(([name, value]) => [
        name,
        asText(value).replace(/[^\x21-\x7e]/g, '?'),
      ]);
      if (drawn.organization !== undefined) headers.push(['x-org-id', drawn.organization]);
      return {
        operation: `${method} ${path}`,
        method,
        path: path.replace(/\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(asText(drawn.path[name]))),
        query: new URLSearchParams(query).toString(),
        headers: Object.fromEntries(headers) as Record<string, string>,
        body: drawn.body,
        credential: drawn.credential,
      };
    });
}

const asJson = (value: unknown) => JSON.stringify(value) as string | undefined;
const asText = (value: unknown) => (typeof value === 'string' ? value : String(asJson(value)));

/** What a path's parameter may be: mostly an id of the resource before it. */
function pathValueOf(path: string): Arbitrary<string> {
  const pool = path
    .split('/')
    .map(poolOf)
    .find((found) => found !== undefined);
  const nonsense = fc.oneof(fc.uuid(), fc.string({ minLength: 1, maxLength: 30 }));
  return pool ? fc.oneof({ weight: 8, arbitrary: knownIdOf(pool) }, nonsense) : nonsense;
}

const anyJson = fc.jsonValue({ maxDepth: 2 }).map(asJson);
const anyBody: Arbitrary<string | undefined> = fc.oneof(anyJson, fc.string(), fc.constant('{'), fc.constant(undefined));
const noBody: Arbitrary<string | undefined> = fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, anyBody);

/** Values that a JSON schema takes, as far as this API's schemas go. */
class Generator {
  constructor(private readonly document: ApiDocument) {}

  /** Mostly a valid value; now and then one with something wrong in it. */
  spoilt(schema: JsonSchema, name = ''): Arbitrary<unknown> {
    const valid = this.valid(schema, name);
    return fc.oneof(
      { weight: 7, arbitrary: valid },
      fc.tuple(valid, fc.nat(), fc.jsonValue({ maxDepth: 1 })).map(spoil),
    );
  }

  private valid(schema: JsonSchema, name = ''): Arbitrary<unknown> {
    const {
      $ref,
      anyOf,
      enum: names,
      type,
    } = schema as {
      $ref?: string;
      anyOf?: JsonSchema[];
      enum?: unknown[];
      type?: string;
    };
    if ($ref) return this.valid(this.document.components.schemas[$ref.split('/').at(-1) ?? ''] ?? {}, name);
    if (anyOf) return fc.oneof(...anyOf.map((one) => this.valid(one, name)));
    if (names) return fc.constantFrom(...names);
    switch (type) {
      case 'object':
        return this.object(schema);
      case 'array':
        return this.array(schema);
      case 'string':
        return stringOf(schema, poolOf(name));
      case 'integer':
        return fc.integer(rangeOf(schema));
      case 'boolean':
        return fc.boolean();
      case 'null':
        return fc.constant(null);
      default:
        return fc.jsonValue({ maxDepth: 1 });
    }
  }

  private object(schema: JsonSchema): Arbitrary<unknown> {
    const { properties = {}, required = [] } = schema as {
      properties?: Record<string, JsonSchema>;
      required?: string[];
    };
    const fields = Object.entries(properties).map(([name, field]) => [name, this.valid(field, name)] as const);
    return fc.record(Object.fromEntries(fields), { requiredKeys: required });
  }

  private array(schema: JsonSchema): Arbitrary<unknown> {
    const {
      items = {},
      minItems,
      maxItems,
      uniqueItems,
    } = schema as {
      items?: JsonSchema;
      minItems?: number;
      maxItems?: number;
      uniqueItems?: boolean;
    };
    const bounds = { minLength: minItems ?? 0, maxLength: Math.min(maxItems ?? 5, 5) };
    return uniqueItems ? fc.uniqueArray(this.valid(items), bounds) : fc.array(this.valid(items), bounds);
  }
}

function rangeOf({ minimum, maximum }: JsonSchema): { min: number; max: number } {
  const [min, max] = [minimum as number | undefined, maximum as number | undefined];
  return { min: min ?? -10, max: Math.min(max ?? 1_000_000, (min ?? 0) + 1_000_000) };
}

function stringOf(
  { format, pattern, minLength = 0, maxLength = 40 }: JsonSchema,
  pool: Pool | undefined,
): Arbitrary<string> {
  if (pool) return fc.oneof({ weight: 9, arbitrary: knownIdOf(pool) }, fc.uuid());
  if (format === 'uuid') return fc.uuid();
  if (format === 'email') return fc.nat().map((n) => `fuzz${n}@example.com`);
  if (format === 'date-time')
    return fc.date({ noInvalidDate: true, min: new Date(0) }).map((date) => date.toISOString());
  if (typeof pattern === 'string') return fc.stringMatching(new RegExp(pattern), { maxLength: 20 });
  const longest = Math.max(Math.min(maxLength as number, 40), minLength as number);
  return fc.string({ minLength: minLength as number, maxLength: longest, unit: 'grapheme' });
}

/** Changes one thing: a field to something else, away, or a new one that nobody knows. */
function spoil([value, pick, other]: [unknown, number, unknown]): unknown {
  if (typeof value !== 'object' || value === null) return other;
  const entries = Object.entries(value);
  const at = pick % (entries.length + 1);
  if (at === entries.length)
    return Array.isArray(value) ? [...(value as unknown[]), other] : { ...value, unheard_of: other };
  const [name] = entries[at] ?? [''];
  if (pick % 3 === 0) return Object.fromEntries(entries.filter(([key]) => key !== name));
  return Object.assign(Array.isArray(value) ? [...(value as unknown[])] : { ...value }, { [name]: other });
}
