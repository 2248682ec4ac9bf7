import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { Answer, Inspect } from './api-client.js';

export type JsonSchema = Record<string, unknown>;

export interface Response {
  $ref?: string;
  content?: Record<string, { schema: JsonSchema }>;
  headers?: Record<string, { $ref: string }>;
}

export interface Operation {
  operationId: string;
  summary: string;
  description: string;
  tags: string[];
  security: object[];
  parameters?: {
    in: 'query' | 'path' | 'header';
    name: string;
    description?: string;
    required?: boolean;
    schema: JsonSchema;
  }[];
  requestBody?: { required?: boolean; content: Record<string, { schema: JsonSchema }> };
  responses: Record<string, Response>;
}

/** As much of an OpenAPI document as the tests read. */
export interface ApiDocument {
  openapi: string;
  info: { version: string; license: { identifier: string } };
  tags: { name: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: {
    schemas: Record<string, JsonSchema>;
    responses: Record<string, Response>;
    headers: Record<string, { required?: boolean }>;
  };
}

/** A response itself, where the document only refers to it. */
export function resolveResponse({ components }: ApiDocument, response: Response | undefined): Response | undefined {
  const name = response?.$ref?.replace('#/components/responses/', '');
  return name === undefined ? response : components.responses[name];
}

/** By what a document depends on. To make one, and what checks answers against it, takes longer than most tests. */
const checkers = new Map<string, Promise<Checker>>();

/**
 * What holds an answer against the document: it throws when an answer is not what the document says. Control planes of the same
 * `variant` serve the same document: it is that of the first one.
 */
export function checkAgainstDocument(variantOf: () => string, baseUrl: () => string): Inspect {
  return async (method, path, answer) => {
    const variant = variantOf();
    const checker = checkers.get(variant) ?? fetchDocument(baseUrl()).then((document) => new Checker(document));
    checkers.set(variant, checker);
    // One that could not be fetched is fetched anew.
    checker.catch(() => checkers.delete(variant));
    (await checker).check(method, path, answer);
  };
}

/** What holds answers against the document of an earlier release, which did not know later headers. */
export function checkAnswers(document: ApiDocument): Inspect {
  const checker = new Checker(document, []);
  return async (method, path, answer) => checker.check(method, path, answer);
}

export async function fetchDocument(baseUrl: string): Promise<ApiDocument> {
  return (await (await fetch(`${baseUrl}/v1/openapi.json`)).json()) as ApiDocument;
}

/** Headers that mean something to a caller, so that the document names each where it is sent. */
const TOLD = [
  'allow',
  'deprecation',
  'idempotent-replayed',
  'retry-after',
  'sunset',
  'www-authenticate',
  'x-request-id',
];
const NO_ROUTE = ['NOT_FOUND', 'METHOD_NOT_ALLOWED', 'ORG_MISMATCH', 'RATE_LIMITED', 'UNAVAILABLE'];

class Checker {
  private readonly ajv = new Ajv2020({ strict: false });
  private readonly compiled = new Map<object, ValidateFunction>();
  private readonly routes: { pattern: RegExp; operations: Record<string, Operation> }[];

  constructor(
    private readonly document: ApiDocument,
    private readonly told: readonly string[] = TOLD,
  ) {
    addFormats.default(this.ajv);
    this.ajv.addSchema({ $id: 'api', components: document.components });
    this.routes = Object.entries(document.paths).map(([path, operations]) => ({
      pattern: new RegExp(`^${path.replace(/\{[^}]+\}/g, '[^/]+')}$`),
      operations,
    }));
  }

  check(method: string, path: string, answer: Answer<unknown>): void {
    const pathname = path.split('?')[0] ?? '';
    const route = this.routes.find(({ pattern }) => pattern.test(pathname));
    const operation = route?.operations[method.toLowerCase()];
    const where = `${method} ${path} answered ${answer.status} ${JSON.stringify(answer.body).slice(0, 500)}`;
    if (!operation) {
      const code = String((answer.body as { code?: unknown } | null)?.code);
      // Who is nobody is not told which addresses there are for operators.
      const isHidden =
        ['TOKEN_INVALID', 'COOKIE_REFUSED', 'API_KEY_ADDRESS', 'SECOND_FACTOR_REQUIRED'].includes(code) &&
        /^\/v1\/operator(\/|$)/.test(pathname);
      if (isHidden || NO_ROUTE.includes(code)) return;
      throw new Error(`${where}, and the document knows no such operation`);
    }
    const response = resolveResponse(this.document, operation.responses[answer.status]);
    if (!response) throw new Error(`${where}, a status that its document does not name`);
    this.checkHeaders(response, answer.headers, where);
    const type = answer.headers.get('content-type')?.split(';')[0] ?? 'application/json';
    const schema = response.content?.[type]?.schema;
    if (!schema) {
      if (answer.body !== null) throw new Error(`${where}, and the document promises no body`);
      return;
    }
    const validate = this.validatorOf(schema);
    if (!validate(answer.body)) throw new Error(`${where}: ${this.ajv.errorsText(validate.errors)}`);
  }

  private checkHeaders({ headers = {} }: Response, sent: Headers, where: string): void {
    const { headers: known } = this.document.components;
    for (const name of Object.keys(headers)) {
      if (known[name]?.required === true && !sent.has(name)) throw new Error(`${where}, without ${name}`);
    }
    const named = Object.keys(headers).map((name) => name.toLowerCase());
    const unnamed = this.told.filter((name) => sent.has(name) && !named.includes(name));
    if (unnamed.length > 0) throw new Error(`${where} with ${unnamed.join(', ')}, which its document does not name`);
  }

  private validatorOf(schema: JsonSchema): ValidateFunction {
    let validate = this.compiled.get(schema);
    if (!validate) {
      const text = JSON.stringify(schema).replaceAll('"#/components', '"api#/components');
      validate = this.ajv.compile(JSON.parse(text) as JsonSchema);
      this.compiled.set(schema, validate);
    }
    return validate;
  }
}
