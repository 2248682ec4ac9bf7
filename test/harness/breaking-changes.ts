import { resolveResponse, type ApiDocument, type JsonSchema, type Operation } from './openapi-conformance.js';

/** Who makes the values of a schema: a client must still be understood in requests, and still understand answers. */
type Direction = 'request' | 'answer';

interface Side {
  document: ApiDocument;
  schema: JsonSchema;
}

/**
 * What a client of `before` meets in `after` that it was not made for, one line each: something removed or renamed, a request that
 * must say more, or an answer that may say other things. Additions are none: routes, optional fields of requests, fields of
 * answers, error codes.
 */
export function breakingChanges(before: ApiDocument, after: ApiDocument): string[] {
  const operations = Object.entries(before.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) => {
      const where = `${method.toUpperCase()} ${path}`;
      const present = after.paths[path]?.[method];
      return present ? compareOperation(where, [before, operation], [after, present]) : [`${where}: removed`];
    }),
  );
  return [...operations, ...compareErrors(before, after)];
}

type Described = readonly [ApiDocument, Operation];

function compareOperation(where: string, before: Described, after: Described): string[] {
  const [was, is] = [before[1], after[1]];
  const breaks = [
    was.operationId === is.operationId ? '' : `${where}: operationId ${was.operationId} is now ${is.operationId}`,
    was.security.length === 0 && is.security.length > 0 ? `${where}: takes a credential` : '',
  ].filter(Boolean);
  return [
    ...breaks,
    ...compareParameters(where, before, after),
    ...compareBodies(where, before, after),
    ...compareAnswers(where, before, after),
  ];
}

function compareParameters(where: string, [old, was]: Described, [present, is]: Described): string[] {
  const keyOf = (parameter: { in: string; name: string }) => `${parameter.in} ${parameter.name}`;
  const [known, found] = [was, is].map(
    ({ parameters = [] }) => new Map(parameters.map((each) => [keyOf(each), each])),
  ) as [ParameterMap, ParameterMap];
  const lost = [...known].flatMap(([key, { schema, required }]) => {
    const now = found.get(key);
    if (!now) return [`${where}: parameter ${key} is removed`];
    const sides = [
      { document: old, schema },
      { document: present, schema: now.schema },
    ] as const;
    return [
      ...(now.required && !required ? [`${where}: parameter ${key} is required`] : []),
      ...compareSchemas(`${where}: ${key}`, 'request', ...sides),
    ];
  });
  const demanded = [...found].filter(([key, { required }]) => required && !known.has(key));
  return [...lost, ...demanded.map(([key]) => `${where}: new parameter ${key} is required`)];
}

type ParameterMap = Map<string, NonNullable<Operation['parameters']>[number]>;

function compareBodies(where: string, [old, was]: Described, [present, is]: Described): string[] {
  const [body, now] = [was.requestBody, is.requestBody];
  if (!body) return now?.required ? [`${where}: takes a body`] : [];
  if (!now) return [`${where}: takes no body any more`];
  return [
    ...(now.required && !body.required ? [`${where}: the body is required`] : []),
    ...compareContents(`${where}: body`, 'request', [old, body.content], [present, now.content]),
  ];
}

type Contents = readonly [ApiDocument, Record<string, { schema: JsonSchema }> | undefined];

function compareContents(where: string, direction: Direction, before: Contents, after: Contents): string[] {
  return Object.entries(before[1] ?? {}).flatMap(([type, { schema }]) => {
    const now = after[1]?.[type];
    if (!now) return [`${where}: no ${type} any more`];
    return compareSchemas(
      where,
      direction,
      { document: before[0], schema },
      { document: after[0], schema: now.schema },
    );
  });
}

/** Errors are compared by their codes, for a route may answer with more of them. */
function compareAnswers(where: string, [old, was]: Described, [present, is]: Described): string[] {
  const successes = Object.entries(was.responses).filter(([status]) => Number(status) < 400);
  return successes.flatMap(([status, response]) => {
    if (!is.responses[status]) return [`${where}: no answer ${status} any more`];
    const [known, now] = [resolveResponse(old, response), resolveResponse(present, is.responses[status])];
    const headers = Object.keys(known?.headers ?? {}).filter((name) => !now?.headers?.[name]);
    return [
      ...headers.map((name) => `${where}: ${status}: header ${name} is removed`),
      ...compareContents(`${where}: ${status}`, 'answer', [old, known?.content], [present, now?.content]),
    ];
  });
}

function compareErrors(before: ApiDocument, after: ApiDocument): string[] {
  const errors = Object.entries(before.components.schemas).filter(([name]) => name.startsWith('error.'));
  return errors.flatMap(([name, schema]) => {
    const now = after.components.schemas[name];
    if (!now) return [`${name}: removed`];
    return compareSchemas(name, 'answer', { document: before, schema }, { document: after, schema: now });
  });
}

/**
 * Compares what the alternatives of both schemas let through. With one alternative each, but for null, the answer says which part
 * of it differs.
 */
function compareSchemas(where: string, direction: Direction, before: Side, after: Side): string[] {
  const [was, is] = [alternativesOf(before), alternativesOf(after)];
  const [sent, understood] = direction === 'request' ? [was, is] : [is, was];
  const compare = (one: JsonSchema, other: JsonSchema) => {
    const [old, present] = direction === 'request' ? [one, other] : [other, one];
    return compareAlternative(where, direction, { ...before, schema: old }, { ...after, schema: present });
  };
  const isNull = ({ type }: JsonSchema) => type === 'null';
  const nulls = sent.some(isNull) && !understood.some(isNull) ? [`${where}: null is ${unfit(direction)}`] : [];
  const [values, fitting] = [sent.filter((one) => !isNull(one)), understood.filter((one) => !isNull(one))];
  const [only, ...others] = fitting;
  if (only && others.length === 0 && values.length === 1)
    return [...nulls, ...values.flatMap((one) => compare(one, only))];
  const strange = values.filter((one) => !fitting.some((other) => compare(one, other).length === 0));
  return [...nulls, ...strange.map((one) => `${where}: ${describe(one)} is ${unfit(direction)}`)];
}

const unfit = (direction: Direction) => (direction === 'request' ? 'not taken any more' : 'a new answer');
const describe = ({ title, type, enum: words }: JsonSchema) =>
  JSON.stringify(title ?? words ?? type ?? 'an alternative');

/** The alternatives of a schema, each without references or parts. */
function alternativesOf({ document, schema }: Side): JsonSchema[] {
  const flat = flatten(document, schema);
  const choices = (flat['anyOf'] ?? flat['oneOf']) as JsonSchema[] | undefined;
  return choices ? choices.flatMap((choice) => alternativesOf({ document, schema: choice })) : [flat];
}

/** The schema that a reference names, with the parts of `allOf` as one. */
function flatten(document: ApiDocument, schema: JsonSchema): JsonSchema {
  const { $ref, allOf, ...rest } = schema as { $ref?: string; allOf?: JsonSchema[] } & JsonSchema;
  if ($ref !== undefined) {
    const named = document.components.schemas[$ref.replace('#/components/schemas/', '')];
    if (!named) throw new Error(`the document has no ${$ref}`);
    return flatten(document, named);
  }
  const parts = (allOf ?? []).map((part) => flatten(document, part));
  return parts.reduce<JsonSchema>(
    (whole, part) => ({
      ...whole,
      ...part,
      properties: { ...propertiesOf(whole), ...propertiesOf(part) },
      required: [...requiredOf(whole), ...requiredOf(part)],
    }),
    rest,
  );
}

const propertiesOf = (schema: JsonSchema) => (schema['properties'] ?? {}) as Record<string, JsonSchema>;
const requiredOf = (schema: JsonSchema) => (schema['required'] ?? []) as string[];

function compareAlternative(where: string, direction: Direction, before: Side, after: Side): string[] {
  const [was, is] = [before.schema, after.schema];
  const type = (schema: JsonSchema) => [(schema['type'] as string | string[] | undefined) ?? 'anything'].flat().join();
  if (type(was) !== type(is)) return [`${where}: ${type(was)} is now ${type(is)}`];
  return [
    ...compareWords(where, direction, was, is),
    ...(direction === 'request' ? compareBounds(where, was, is) : compareFormat(where, was, is)),
    ...compareProperties(where, direction, before, after),
    ...compareInner(`${where}[]`, direction, 'items', before, after),
    ...compareInner(`${where}.*`, direction, 'additionalProperties', before, after),
  ];
}

function compareWords(where: string, direction: Direction, was: JsonSchema, is: JsonSchema): string[] {
  const [before, after] = [was['enum'], is['enum']] as (unknown[] | undefined)[];
  const [sent, understood] = direction === 'request' ? [before, after] : [after, before];
  if (!understood) return [];
  if (!sent) return [`${where}: any value instead of ${JSON.stringify(understood)} is ${unfit(direction)}`];
  const strange = sent.filter((word) => !understood.includes(word));
  return strange.map((word) => `${where}: ${JSON.stringify(word)} is ${unfit(direction)}`);
}

const UPPER = ['maximum', 'maxLength', 'maxItems'];
const LOWER = ['minimum', 'minLength', 'minItems'];
const EXACT = ['pattern', 'format', 'uniqueItems'];

/** What a sender may not go beyond, and what holds where nothing is sent. */
function compareBounds(where: string, was: JsonSchema, is: JsonSchema): string[] {
  const limit = (schema: JsonSchema, name: string, none: number) => (schema[name] as number | undefined) ?? none;
  const stricter = [
    ...UPPER.filter((name) => limit(is, name, Infinity) < limit(was, name, Infinity)),
    ...LOWER.filter((name) => limit(is, name, -Infinity) > limit(was, name, -Infinity)),
    ...EXACT.filter((name) => is[name] !== undefined && is[name] !== was[name]),
    ...('default' in was && JSON.stringify(was['default']) !== JSON.stringify(is['default']) ? ['default'] : []),
  ];
  return stricter.map((name) => `${where}: ${name} is now ${JSON.stringify(is[name])}`);
}

function compareFormat(where: string, was: JsonSchema, is: JsonSchema): string[] {
  return was['format'] === undefined || was['format'] === is['format']
    ? []
    : [`${where}: format is now ${JSON.stringify(is['format'])}`];
}

function compareProperties(where: string, direction: Direction, before: Side, after: Side): string[] {
  const [was, is] = [propertiesOf(before.schema), propertiesOf(after.schema)];
  const [needed, needs] = [requiredOf(before.schema), requiredOf(after.schema)];
  const known = Object.entries(was).flatMap(([name, schema]) => {
    const now = is[name];
    if (!now) return [`${where}.${name}: removed`];
    return compareSchemas(`${where}.${name}`, direction, { ...before, schema }, { ...after, schema: now });
  });
  const changed =
    direction === 'request'
      ? needs.filter((name) => !needed.includes(name)).map((name) => `${where}.${name}: is required`)
      : needed.filter((name) => name in is && !needs.includes(name)).map((name) => `${where}.${name}: may be missing`);
  return [...known, ...changed];
}

function compareInner(where: string, direction: Direction, key: string, before: Side, after: Side): string[] {
  const [was, is] = [before.schema[key], after.schema[key]] as (JsonSchema | boolean | undefined)[];
  if (typeof was !== 'object' || typeof is !== 'object') {
    const isClosed = direction === 'request' && key === 'additionalProperties' && is === false && was !== false;
    return isClosed ? [`${where}: unknown fields are not taken any more`] : [];
  }
  return compareSchemas(where, direction, { ...before, schema: was }, { ...after, schema: is });
}
