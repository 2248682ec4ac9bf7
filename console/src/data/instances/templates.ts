import { queryOptions, useQuery } from '@tanstack/react-query';
import { api } from '../api/api.js';
import type { Template } from '../api/models.js';

/** Returns who has made a template, and who sees it. What is quoted somebody has called themselves: anybody can have any name. */
export function makerOf({ visibility, publisher, is_own = false }: Template): string {
  if (visibility === 'system') return 'by the operator';
  if (visibility === 'organization') return 'only for your organization';
  if (is_own) return 'public, by your organization';
  return publisher === null ? 'public, by an organization' : `public, by “${publisher}”`;
}

/** Tells whether a stranger has made a template: neither the operator nor the organization of the reader. */
export function isOfStranger({ visibility, is_own = false }: Template): boolean {
  return visibility === 'public' && !is_own;
}

/** Returns a template as a choice: its maker comes last, so that no name can look like one. `notes`: what else there is to know. */
export function choiceOf(template: Template, ...notes: string[]): { value: string; label: string } {
  return { value: template.id, label: `${template.name} (${[...notes, makerOf(template)].join('; ')})` };
}

/** What is read at most to choose from, by who has made it. A page is shorter where templates are long; strangers can publish what they like. */
const MOST = { own: { items: 200, pages: 4 }, system: { items: 200, pages: 4 }, public: { items: 100, pages: 1 } };

/** Reads the first templates of a maker, by name. */
async function readFirst(tab: keyof typeof MOST, signal: AbortSignal) {
  const most = MOST[tab];
  const read = (limit: number, cursor: string | undefined) =>
    api.get('/v1/templates', {
      params: { query: { tab, limit, ...(cursor === undefined ? {} : { cursor }) } },
      signal,
    });
  const items: Template[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < most.pages && items.length < most.items; page += 1) {
    const answer = await read(most.items - items.length, cursor);
    items.push(...answer.items);
    cursor = answer.next_cursor ?? undefined;
    if (cursor === undefined) break;
  }
  return { items, hasMore: cursor !== undefined };
}

const firstTemplates = queryOptions({
  queryKey: ['templates', 'first'],
  queryFn: async ({ signal }) => {
    const tabs = ['own', 'system', 'public'] as const;
    const read = await Promise.all(tabs.map((tab) => readFirst(tab, signal)));
    // What the organization has published is in two of them.
    const byId = new Map(read.flatMap(({ items }) => items).map((each) => [each.id, each] as const));
    return { items: [...byId.values()], hasMore: read.some(({ hasMore }) => hasMore) };
  },
});

const templateOf = (id: string | undefined) =>
  queryOptions({
    queryKey: ['templates', 'one', id],
    queryFn: ({ signal }) => api.get('/v1/templates/{id}', { params: { path: { id: id ?? '' } }, signal }),
    enabled: id !== undefined,
  });

/**
 * Reads the templates of which one can be chosen: those of the organization, then the operator's, then what others have published, each by
 * name; and the chosen one, which can be none of the first. `hasMore`: the page of templates has the rest.
 */
export function useTemplates(chosen: string | undefined) {
  const first = useQuery(firstTemplates);
  const listed = first.data?.items ?? [];
  const isListed = listed.some(({ id }) => id === chosen);
  const other = useQuery(templateOf(first.isPending || isListed ? undefined : chosen));
  const templates = other.data ? inOrder([...listed, other.data]) : listed;
  return {
    templates,
    template: templates.find(({ id }) => id === chosen),
    hasMore: first.data?.hasMore ?? false,
    isPending: first.isPending || other.isLoading,
    error: first.error ?? other.error,
    readAgain: () => void (first.error ? first.refetch() : other.refetch()),
  };
}

/** Returns templates by who has made them, each after those that stand before it already. */
function inOrder(templates: readonly Template[]): Template[] {
  return [...templates].sort((one, other) => rankOf(one) - rankOf(other));
}

function rankOf(template: Template): number {
  if (isOfStranger(template)) return 2;
  return template.visibility === 'system' ? 1 : 0;
}
