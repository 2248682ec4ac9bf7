import type { OpenAPIV3_1 } from 'openapi-types';

export type Document = Partial<OpenAPIV3_1.Document>;

/**
 * Moves every schema that has a title to the document's components, where readers and generators look for it. The description of
 * a use stays beside its reference.
 */
export function nameModels(document: Document): Document {
  const schemas: Record<string, unknown> = { ...document.components?.schemas };
  const visit = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(visit);
    if (typeof node !== 'object' || node === null) return node;
    const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, visit(value)]));
    const { title, description, ...model } = copy as { title?: unknown; description?: string };
    if (typeof title !== 'string' || !('type' in node)) return copy;
    schemas[title] = { title, ...model };
    return { $ref: `#/components/schemas/${title}`, ...(description === undefined ? {} : { description }) };
  };
  const paths = visit(document.paths) as NonNullable<OpenAPIV3_1.Document['paths']>;
  return { ...document, paths, components: { ...document.components, schemas } as OpenAPIV3_1.ComponentsObject };
}
