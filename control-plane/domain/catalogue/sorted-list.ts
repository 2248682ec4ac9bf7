/** Items in an order in which no two are equal. Finding a place takes as many steps as the number of items has binary digits. */
export class SortedList<Item> {
  readonly items: Item[] = [];

  constructor(private readonly compare: (a: Item, b: Item) => number) {}

  add(item: Item): void {
    this.items.splice(this.placeOf(item), 0, item);
  }

  /** Removes the item that is equal to this one, if it is there. */
  remove(item: Item): void {
    const at = this.placeOf(item);
    const found = this.items[at];
    if (found !== undefined && this.compare(found, item) === 0) this.items.splice(at, 1);
  }

  /** Returns the position of the first item that is not before this one. */
  private placeOf(item: Item): number {
    let [from, to] = [0, this.items.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      const other = this.items[middle];
      if (other !== undefined && this.compare(other, item) < 0) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}
