import { known, textIn, wordIn } from '../../data/forms/address.js';

export const TABS = ['recommended', 'organization', 'system', 'public'] as const;
export type Tab = (typeof TABS)[number];

/** The API takes no more. */
export const LONGEST_WORDS = 200;

/** What the address of the list says. */
export interface TemplatesSearch {
  /** Only these; otherwise all. */
  tab?: Tab;
  /** Only those in whose name, description or image these words are. */
  words?: string;
}

/** Reads the address; what it does not know is left out. */
export function templatesSearch({ tab, words }: Record<string, unknown>): TemplatesSearch {
  return known({ tab: wordIn(TABS, tab), words: textIn(words, LONGEST_WORDS) });
}
