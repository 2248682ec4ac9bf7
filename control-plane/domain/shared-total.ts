/** Whose something is that takes a place of a total which strangers share. */
export interface Holder {
  /** Whether money has ever come to its organization. */
  hasPaid: boolean;
  /** The organization if it has paid; otherwise the account to which it belongs: all that have not paid of one account count as one. */
  person: string;
  network: string;
}

/** How a total is shared. */
export interface Sharing<Item> {
  /** How many there can be. Organizations that have never paid hold at most half of it together. */
  most: number;
  holderOf: (item: Item) => Holder;
  /** Tells whether an item can be ended; otherwise each can. */
  mayLose?: (item: Item) => boolean;
}

/**
 * Returns the items that have to go, so that all of them, and those of organizations that have never paid, are as few as a total allows.
 * Those that have never paid lose first; among them, and then among the others, an item of the person who holds the most, then of the
 * network that holds the most, then the first in the order of `items`. So a person with many items loses their own first. More can stay than fit, where none may lose.
 */
export function overShare<Item>(items: Iterable<Item>, { most, holderOf, mayLose }: Sharing<Item>): Item[] {
  const left = new Map<Item, Holder>();
  let unpaid = 0;
  for (const item of items) {
    const holder = holderOf(item);
    left.set(item, holder);
    if (!holder.hasPaid) unpaid += 1;
  }
  const losers: Item[] = [];
  const lose = (hasPaid: boolean): boolean => {
    const loser = loserOf(left, hasPaid, mayLose);
    if (loser === undefined) return false;
    left.delete(loser.item);
    losers.push(loser.item);
    return true;
  };
  for (; unpaid > mostUnpaid(most) && lose(false); unpaid -= 1);
  while (left.size > most && (lose(false) || lose(true)));
  return losers;
}

/** Returns how many of a total those can hold together that have never paid. */
export function mostUnpaid(most: number): number {
  return Math.floor(most / 2);
}

function loserOf<Item>(
  left: ReadonlyMap<Item, Holder>,
  hasPaid: boolean,
  mayLose: Sharing<Item>['mayLose'],
): { item: Item } | undefined {
  const among = [...left].filter(([, holder]) => holder.hasPaid === hasPaid);
  const ofPersons = countOf(among.map(([, { person }]) => person));
  const ofNetworks = countOf(among.map(([, { network }]) => network));
  let first: { item: Item; ofPerson: number; ofNetwork: number } | undefined;
  for (const [item, { person, network }] of among) {
    const [ofPerson, ofNetwork] = [ofPersons.get(person) ?? 0, ofNetworks.get(network) ?? 0];
    const isMore = !first || ofPerson > first.ofPerson || (ofPerson === first.ofPerson && ofNetwork > first.ofNetwork);
    if (isMore && (mayLose?.(item) ?? true)) first = { item, ofPerson, ofNetwork };
  }
  return first;
}

function countOf(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

/** What is taken of a total in which a place is not taken away again: it is free after a time. */
export interface Taken {
  /** How many places there are. */
  most: number;
  taken: number;
  /** How many of them those hold who ask for one more: the person, or everybody in the wider network. */
  held: number;
}

/**
 * Tells whether somebody gets one more place of a total which strangers share: whoever holds a place gets more only while less than half of
 * the total is taken, and whoever holds none gets one until it is full. So a few strangers cannot use it up for everybody.
 */
export function mayTake({ most, taken, held }: Taken): boolean {
  return taken < (held === 0 ? most : most / 2);
}
