import { NEEDS, type Need } from '../../data/instances/instances.js';

/** Which instances are shown, and how they are grouped; without `by`, by what they need. */
export interface InstancesSearch {
  need?: Need;
  /** What the label, or the name of the template, contains. */
  words?: string;
  by?: 'label' | 'template';
}

const LONGEST = 64;

/** Reads the address; what it does not know is left out. */
export function instancesSearch({ need, words, by }: Record<string, unknown>): InstancesSearch {
  const known = NEEDS.find((each) => each === need);
  return {
    ...(known ? { need: known } : {}),
    ...(typeof words === 'string' && words !== '' ? { words: words.slice(0, LONGEST) } : {}),
    ...(by === 'label' || by === 'template' ? { by } : {}),
  };
}
