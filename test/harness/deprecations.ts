import type { ApiDocument } from './openapi-conformance.js';

/** What a document says of something deprecated: an operation, a parameter or a field. */
interface Deprecated {
  deprecated: true;
  'x-deprecated-since'?: string;
  'x-sunset'?: string;
}

/** The time for which something deprecated goes on at least. */
const LEAST_MONTHS = 24;

/** Returns the document without what it says has ended by this day (`2027-01-31`): a later release can leave that out. */
export function withoutEnded(document: ApiDocument, today: string): ApiDocument {
  const hasEnded = (node: unknown) => {
    const marked = isParameter(node) ? node.schema : node;
    return isDeprecated(marked) && marked['x-sunset'] !== undefined && marked['x-sunset'] <= today;
  };
  const visit = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.filter((one) => !hasEnded(one)).map(visit);
    if (typeof node !== 'object' || node === null) return node;
    const left = Object.entries(node).filter(([, value]) => !hasEnded(value));
    return Object.fromEntries(left.map(([key, value]) => [key, visit(value)]));
  };
  return visit(document) as ApiDocument;
}

/** Returns what is wrong with the deprecations of a document, and with those that it has changed since the one before, one line each. */
export function deprecationFaults(before: ApiDocument, after: ApiDocument): string[] {
  const earlier = deprecationsOf(before);
  return [...deprecationsOf(after)].flatMap(([place, { 'x-deprecated-since': since, 'x-sunset': sunset }]) => {
    if (!isDay(since) || !isDay(sunset)) return [`${place}: does not say since when and until when`];
    const promised = earlier.get(place)?.['x-sunset'] ?? '';
    return [
      ...(sunset < monthsAfter(since, LEAST_MONTHS) ? [`${place}: ends less than ${LEAST_MONTHS} months later`] : []),
      ...(sunset < promised ? [`${place}: ends before ${promised}, which was promised`] : []),
    ];
  });
}

function isDay(text: string | undefined): text is string {
  return text !== undefined && /^\d{4}-\d\d-\d\d$/.test(text) && Number.isFinite(Date.parse(text));
}

function monthsAfter(day: string, months: number): string {
  const date = new Date(day);
  date.setUTCMonth(date.getUTCMonth() + months);
  return date.toISOString().slice(0, 'YYYY-MM-DD'.length);
}

function deprecationsOf(document: ApiDocument): Map<string, Deprecated> {
  const found = new Map<string, Deprecated>();
  const visit = (node: unknown, place: string) => {
    if (typeof node !== 'object' || node === null) return;
    if (isDeprecated(node)) found.set(place, node);
    for (const [key, value] of Object.entries(node))
      visit(value, `${place} ${isParameter(value) ? value.name : key}`.trim());
  };
  visit(document, '');
  return found;
}

/** A parameter is known by its name, for its place in the list changes; what it is, its schema says. */
function isParameter(node: unknown): node is { name: string; schema: unknown } {
  return typeof node === 'object' && node !== null && 'in' in node && 'name' in node && 'schema' in node;
}

function isDeprecated(node: unknown): node is Deprecated {
  return typeof node === 'object' && node !== null && (node as Partial<Deprecated>).deprecated === true;
}
