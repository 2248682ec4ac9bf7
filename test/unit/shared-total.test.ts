import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mayTake, mostUnpaid, overShare, type Holder } from '../../control-plane/domain/shared-total.js';

interface Item extends Holder {
  name: string;
  isBusy?: boolean;
}

const by = (name: string, person: string, { network = person, hasPaid = false, isBusy = false } = {}): Item => ({
  name,
  person,
  network,
  hasPaid,
  isBusy,
});
const losersOf = (most: number, items: Item[]) =>
  overShare(items, { most, holderOf: (item) => item, mayLose: ({ isBusy }) => !isBusy });
const namesOf = (most: number, items: Item[]) => losersOf(most, items).map(({ name }) => name);
const paid = { hasPaid: true };

describe('a total that strangers share', () => {
  it('is left alone while all fit', () => {
    expect(namesOf(4, [by('a', 'one'), by('b', 'one'), by('c', 'two', paid), by('d', 'two', paid)])).toEqual([]);
  });

  it('is half of those that have never paid at most, also while there is room', () => {
    expect(namesOf(4, [by('a', 'one'), by('b', 'two'), by('c', 'one')])).toEqual(['a']);
    expect(namesOf(5, [by('a', 'one'), by('b', 'two'), by('c', 'three')])).toEqual(['a']);
  });

  it('loses one of the largest person, then of the largest network, then the first', () => {
    const ofOne = [by('a', 'small'), by('b', 'large'), by('c', 'large')];
    expect(namesOf(4, ofOne)).toEqual(['b']);
    const inOneNetwork = [by('a', 'one'), by('b', 'two', { network: 'n' }), by('c', 'three', { network: 'n' })];
    expect(namesOf(4, inOneNetwork)).toEqual(['b']);
  });

  it('loses nobody who has paid as long as somebody is there who has not', () => {
    const payers = [1, 2, 3, 4].map((at) => by(`paid ${at}`, 'payer', paid));
    expect(namesOf(4, [by('free', 'one'), ...payers])).toEqual(['free']);
    expect(namesOf(3, payers)).toEqual(['paid 1']);
    expect(namesOf(4, [...payers, by('free', 'one')])).toEqual(['free']);
  });

  it('keeps what may not lose: then more are there than fit', () => {
    expect(namesOf(4, [by('a', 'one', { isBusy: true }), by('b', 'one'), by('c', 'two')])).toEqual(['b']);
    expect(namesOf(2, [by('a', 'one', { isBusy: true }), by('b', 'two', { isBusy: true })])).toEqual([]);
  });

  it('never takes from somebody what another one of those that have not paid has more of', () => {
    const holder = fc.record({
      hasPaid: fc.boolean(),
      person: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
      network: fc.constantFrom('n', 'm'),
    });
    const counts = (items: Item[], person: string) =>
      items.filter((item) => !item.hasPaid && item.person === person).length;
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.array(holder, { maxLength: 40 }), (most, coming) => {
        let held: Item[] = [];
        for (const [at, one] of coming.entries()) {
          const before = [...held, { ...one, name: String(at) }];
          const losers = losersOf(most, before);
          held = before.filter((item) => !losers.includes(item));
          expect(held.length).toBeLessThanOrEqual(most);
          expect(held.filter(({ hasPaid }) => !hasPaid).length).toBeLessThanOrEqual(mostUnpaid(most));
          const [first] = losers;
          if (first?.hasPaid)
            expect(before.filter(({ hasPaid }) => !hasPaid)).toEqual(losers.filter(({ hasPaid }) => !hasPaid));
          else if (first)
            for (const { person } of before)
              expect(counts(before, first.person)).toBeGreaterThanOrEqual(counts(before, person));
        }
      }),
    );
  });
});

describe('a total whose places nobody loses', () => {
  it.each([
    [{ most: 4, taken: 3, held: 0 }, true],
    [{ most: 4, taken: 4, held: 0 }, false],
    [{ most: 4, taken: 1, held: 1 }, true],
    [{ most: 4, taken: 2, held: 1 }, false],
    [{ most: 5, taken: 2, held: 2 }, true],
    [{ most: 5, taken: 3, held: 1 }, false],
  ])('of which %j gives one more: %s', (places, expected) => {
    expect(mayTake(places)).toBe(expected);
  });
});
