import { nameOf, needOf, NEEDS, type Need } from '../../data/instances/instances.js';
import type { Instance } from '../../data/api/models.js';
import type { InstancesSearch } from './search.js';

type Shown = Pick<Instance, 'status' | 'label' | 'template'>;

export interface Group<Item> {
  title: string;
  items: Item[];
}

const TITLES: Readonly<Record<Need, string>> = {
  failed: 'Failed: look at these',
  'under way': 'Under way',
  running: 'Running',
  stopped: 'Stopped',
  destroyed: 'Destroyed',
};

/** Returns the instances that were asked for. */
export function chosen<Item extends Shown>(items: readonly Item[], { need, words = '' }: InstancesSearch): Item[] {
  const wanted = words.toLowerCase().trim();
  return items.filter(
    (item) =>
      (need === undefined || needOf(item) === need) &&
      `${item.label ?? ''} ${item.template.name}`.toLowerCase().includes(wanted),
  );
}

/** Returns instances in groups, none of them empty: by what they need, first those that failed; or by a name, those without one last. */
export function grouped<Item extends Shown>(items: readonly Item[], by: InstancesSearch['by']): Group<Item>[] {
  const byNeed = NEEDS.map((need) => ({ title: TITLES[need], items: items.filter((item) => needOf(item) === need) }));
  if (by === undefined) return byNeed.filter((group) => group.items.length > 0);
  const inOrder = byNeed.flatMap((group) => group.items);
  const keyOf = (item: Item) => (by === 'label' ? (item.label ?? '') : item.template.name);
  const keys = [...new Set(inOrder.map(keyOf))].sort(
    (a, b) => Number(a === '') - Number(b === '') || a.localeCompare(b),
  );
  return keys.map((key) => ({
    title: key === '' ? 'Without a label' : key,
    items: inOrder.filter((item) => keyOf(item) === key),
  }));
}

/** Returns how many instances need what, for each need that some have. */
export function countsOf(items: readonly Shown[]): { need: Need; count: number }[] {
  return NEEDS.map((need) => ({ need, count: items.filter((item) => needOf(item) === need).length })).filter(
    ({ count }) => count > 0,
  );
}

/** Returns a list of names as a sentence has it, at most ten of them. */
export function namesOf(items: readonly Shown[]): string {
  const names = items.slice(0, 10).map(nameOf);
  return items.length > names.length ? `${names.join(', ')} and ${items.length - names.length} more` : names.join(', ');
}
