import addFormats from 'ajv-formats';
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isSeen } from '../../../shared/plain-text.js';
import { Refusal } from '../../domain/refusal.js';
import { PLAIN_TEXT } from './schemas.js';
import { checkPatterns, PLAIN_DIGITS, wordsOf, type SchemaError } from './validation-words.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The handler reads the bytes of the body itself. */
    rawBody?: true;
  }
}

/** A UUID as in RFC 9562. The library's own format also accepts URNs. */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** A whole number in a query string. JavaScript also accepts 1e2, +5 and 0x10, which the caller may mean otherwise. */
const PLAIN_INTEGER = /^-?\d+$/;
/** In a body with more values, only the first invalid field is reported, because finding all would cost too much. */
const MAX_SEARCHED_VALUES = 2_000;
const MAX_DETAILS = 20;
const MAX_PATH_CHARS = 200;

/** An invalid field. `path` has dots between its parts and is empty for the whole request. */
export interface Detail {
  path: string;
  message: string;
}

/** Validates requests by their schemas. Bodies are not converted; text in the query string is converted to the type in the schema. */
export function validateStrictly(app: FastifyInstance): void {
  app.setValidatorCompiler(({ schema, httpPart }) => {
    const validate = (httpPart === 'body' ? body : text).compile(schema);
    return httpPart === 'querystring' ? withPlainIntegers(schema as QuerySchema, validate) : validate;
  });
  app.addHook('onRoute', ({ method, url, schema = {} }) => {
    const { body: ofBody, querystring, params, headers } = schema;
    checkPatterns(`${String(method)} ${url}`, [ofBody, querystring, params, headers]);
  });
  app.addHook('preValidation', (request, _reply, done) => done(prepareFields(request)));
}

/** Unifies ids and fills in an empty body. Returns the refusal of a body that the route does not take. */
function prepareFields(request: FastifyRequest): Refusal | undefined {
  const { body, params, query, routeOptions } = request;
  unifyIds(params, () => true);
  unifyIds(query, isIdName);
  if (body === undefined && request.method === 'GET') return undefined;
  unifyIds(body, isIdName);
  const { schema, config } = routeOptions;
  if (body === undefined && mayBeEmpty(schema?.body) && ['POST', 'DELETE'].includes(request.method)) request.body = {};
  return schema?.body === undefined && config.rawBody !== true ? refusalOfUnaskedBody(body) : undefined;
}

const isIdName = (name: string) => name.endsWith('_id');

/** Tells whether no field of this schema is required, so that a POST or DELETE needs no body. */
export function mayBeEmpty(schema: unknown): boolean {
  const { type, properties = {}, required = [] } = (schema ?? {}) as BodySchema;
  return type === 'object' && required.every((name) => 'default' in (properties[name] ?? {}));
}

interface BodySchema {
  type?: string;
  properties?: Record<string, object>;
  required?: string[];
}

/** Returns VALIDATION_FAILED with each invalid field once, at most {@link MAX_DETAILS} fields. */
export function refuseFields(details: readonly Detail[]): Refusal {
  const fields = new Map<string, Detail>();
  for (const { path, message } of details) {
    if (fields.size < MAX_DETAILS && !fields.has(path))
      fields.set(path, { path: path.slice(0, MAX_PATH_CHARS), message });
  }
  const [first = { path: '', message: 'is not valid' }] = fields.values();
  const message = `${first.path || 'the request'}: ${first.message}`;
  return new Refusal('VALIDATION_FAILED', message, { details: [...fields.values()] });
}

/** Converts an error of the schema validator to a {@link Detail}. */
export function detailOf(error: SchemaError): Detail {
  const { instancePath, params, keyword } = error;
  const unknown = keyword === 'additionalProperties' ? String(params['additionalProperty']) : undefined;
  const missing = keyword === 'required' ? String(params['missingProperty']) : undefined;
  const path = [instancePath.slice(1).replaceAll('/', '.'), unknown ?? missing].filter(Boolean).join('.');
  if (unknown !== undefined) return { path, message: UNKNOWN };
  if (missing !== undefined) return { path, message: 'this field is required' };
  return { path, message: wordsOf(error) };
}

const UNKNOWN = 'this field is unknown';

/** Returns the refusal of a body on a route that takes none. An unknown field could be meant to change the action, such as `dry_run`. */
function refusalOfUnaskedBody(body: unknown): Refusal | undefined {
  if (body === undefined || body === null) return undefined;
  if (typeof body !== 'object' || Array.isArray(body))
    return refuseFields([{ path: '', message: 'this address takes no body; send none' }]);
  const details = Object.keys(body).map((path) => ({ path, message: UNKNOWN }));
  return details.length > 0 ? refuseFields(details) : undefined;
}

/** Converts UUIDs to lower case, as they are stored. */
function unifyIds(fields: unknown, isId: (name: string) => boolean): void {
  if (typeof fields !== 'object' || fields === null) return;
  const values = fields as Record<string, unknown>;
  for (const name of Object.keys(values)) {
    const value = values[name];
    if (isId(name) && typeof value === 'string' && UUID.test(value)) values[name] = value.toLowerCase();
  }
}

interface Validate {
  (data: unknown): boolean;
  errors?: ErrorObject[] | null;
}

/** Returns the test of a pattern. That of names also refuses those of which people do not see all. */
const patternOf = Object.assign(
  (pattern: string, flags: string) => {
    const expression = new RegExp(pattern, flags);
    if (pattern !== PLAIN_TEXT) return expression;
    return { test: (text: string) => expression.test(text) && isSeen(text) };
  },
  { code: 'new RegExp' },
);

/** Compiles validators for bodies or for the text parts of requests. */
class Validators {
  private readonly one: Compile;
  private readonly all: Compile;

  constructor(coerceTypes: boolean) {
    const options: Options = { useDefaults: true, removeAdditional: false, strict: false, verbose: true, coerceTypes };
    this.one = compilerOf({ ...options, allErrors: false });
    this.all = compilerOf({ ...options, allErrors: true });
  }

  /** Returns a validator that is compiled at its first use. Compiling all at startup would take most of the startup time. */
  compile(schema: object): Validate {
    let one: ValidateFunction | undefined;
    let all: ValidateFunction | undefined;
    const validate: Validate = (data) => {
      one ??= this.one(schema);
      if (one(data)) return true;
      validate.errors = one.errors ?? null;
      if (!hasAtMost(MAX_SEARCHED_VALUES, data)) return false;
      all ??= this.all(schema);
      all(data);
      validate.errors = all.errors ?? validate.errors;
      return false;
    };
    return validate;
  }
}

const body = new Validators(false);
const text = new Validators(true);

type Compile = (schema: object) => ValidateFunction;

/** Returns a function that compiles equal schemas once: most routes have the same parameters and pages. */
function compilerOf(options: Options): Compile {
  const ajv = new Ajv({ ...options, code: { regExp: patternOf } });
  addFormats.default(ajv);
  ajv.addFormat('uuid', UUID);
  const compiled = new Map<string, ValidateFunction>();
  return (schema) => {
    const key = JSON.stringify(schema);
    const known = compiled.get(key) ?? ajv.compile(schema);
    compiled.set(key, known);
    return known;
  };
}

/** Tells whether `data` contains at most `most` values, at all depths. */
function hasAtMost(most: number, data: unknown): boolean {
  const open = [data];
  let count = 0;
  for (let value = open.pop(); open.length + count <= most; value = open.pop()) {
    count += 1;
    if (typeof value === 'object' && value !== null) {
      const values = Object.values(value);
      if (values.length > most) return false;
      open.push(...(values as unknown[]));
    }
    if (open.length === 0) return true;
  }
  return false;
}

interface QuerySchema {
  properties?: Record<string, { type?: unknown }>;
}

function withPlainIntegers({ properties = {} }: QuerySchema, validate: Validate): Validate {
  const integers = Object.keys(properties).filter((name) => properties[name]?.type === 'integer');
  const checked: Validate = (data) => {
    // Checked before the validator converts them to numbers.
    const odd = integers.filter((name) => isOdd((data as Record<string, unknown>)[name]));
    const isValid = validate(data);
    checked.errors = [...odd.map(notPlain), ...(isValid ? [] : (validate.errors ?? []))];
    return checked.errors.length === 0;
  };
  return checked;
}

function isOdd(value: unknown): boolean {
  return typeof value === 'string' && !PLAIN_INTEGER.test(value);
}

function notPlain(name: string): ErrorObject {
  return { instancePath: `/${name}`, schemaPath: '', keyword: PLAIN_DIGITS, params: {} };
}
