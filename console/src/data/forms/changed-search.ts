/** Returns what an address says, with some of it changed; undefined takes it away. */
export function changedSearch<Search extends object>(
  before: Search,
  changed: { [Name in keyof Search]?: Search[Name] | undefined },
): Search {
  const both = Object.entries<unknown>({ ...before, ...changed });
  return Object.fromEntries(both.filter(([, value]) => value !== undefined)) as Search;
}
