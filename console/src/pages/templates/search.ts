export const TABS = ['recommended', 'organization', 'system', 'public'] as const;
export type Tab = (typeof TABS)[number];

/** What the address of the list says. */
export interface TemplatesSearch {
  /** Only these; otherwise all. */
  tab?: Tab;
  /** Only those in whose name, description or image these words are. */
  words?: string;
}

/** Reads the address; what it does not know is left out. */
export function templatesSearch({ tab, words }: Record<string, unknown>): TemplatesSearch {
  const known = TABS.find((each) => each === tab);
  return { ...(known ? { tab: known } : {}), ...(typeof words === 'string' && words !== '' ? { words } : {}) };
}
