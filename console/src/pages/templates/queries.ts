import { queryOptions } from '@tanstack/react-query';
import { api } from '../../data/api/api.js';
import { inPages } from '../../data/api/pages.js';
import type { Tab } from './search.js';

/** The templates of a tab that have some words in them, by name, without their long texts. */
export const templatesIn = (tab: Tab | undefined, words: string) =>
  inPages(['templates', 'list', tab ?? 'all', words], (page, signal) => {
    const filter = { ...(tab === undefined ? {} : { tab }), ...(words === '' ? {} : { words }) };
    return api.get('/v1/templates', { params: { query: { ...filter, ...page } }, signal });
  });

/** A template with its readme and its start script. */
export const template = (id: string) =>
  queryOptions({
    queryKey: ['templates', 'one', id],
    queryFn: ({ signal }) => api.get('/v1/templates/{id}', { params: { path: { id } }, signal }),
  });
