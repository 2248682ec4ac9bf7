import { describe, expect, it } from 'vitest';
import { FIRST_CURSOR, linesAfter } from '../../control-plane/services/connections/log-cursor.js';
import { KEPT_LINES } from '../../control-plane/services/connections/log-relay.js';

const stamp = (number: number) => `2026-01-01T00:00:00.${String(number).padStart(9, '0')}Z`;
const lines = (...numbers: number[]) =>
  numbers.map((number, index) => ({ at: stamp(number), text: `${index} ${number}` }));
const range = (from: number, to: number) => lines(...Array.from({ length: to - from + 1 }, (_, index) => from + index));
const textsOf = ({ lines: some }: { lines: { text: string }[] }) => some.map(({ text }) => text);

describe('lines after a cursor', () => {
  it('are the last ones for an empty cursor, then each once', () => {
    const first = linesAfter(range(1, 10), '', 4);
    expect(textsOf(first)).toEqual(['6 7', '7 8', '8 9', '9 10']);
    expect(linesAfter(range(1, 10), first.next, 4)).toEqual({ lines: [], next: first.next, missed: false });
    const second = linesAfter(range(1, 20), first.next, 4);
    expect(textsOf(second)).toEqual(['10 11', '11 12', '12 13', '13 14']);
    expect(textsOf(linesAfter(range(1, 20), second.next, 100))).toHaveLength(6);
  });

  it('of one time stamp are told apart by their number', () => {
    const same = lines(1, 2, 2, 2, 3);
    const first = linesAfter(same.slice(0, 3), '', 10);
    expect(textsOf(linesAfter(same, first.next, 1))).toEqual(['3 2']);
    expect(textsOf(linesAfter(same, first.next, 10))).toEqual(['3 2', '4 3']);
    const middle = linesAfter(same, linesAfter(same.slice(0, 1), '', 1).next, 2);
    expect(textsOf(middle)).toEqual(['1 2', '2 2']);
    expect(textsOf(linesAfter(same, middle.next, 2))).toEqual(['3 2', '4 3']);
  });

  it('come in the order in which they arrived, also if a time stamp is earlier', () => {
    const mixed = lines(1, 5, 3, 4, 6);
    const first = linesAfter(mixed.slice(0, 2), '', 10);
    expect(textsOf(linesAfter(mixed, first.next, 10))).toEqual(['2 3', '3 4', '4 6']);
  });

  it('that were dropped in between are told of', () => {
    const { next } = linesAfter(range(1, 5), '', 10);
    expect(linesAfter(range(4, 9), next, 100)).toMatchObject({ missed: false });
    expect(textsOf(linesAfter(range(4, 9), next, 100))).toHaveLength(4);
    const gap = linesAfter(range(7, 9), next, 100);
    expect(gap.missed).toBe(true);
    expect(textsOf(gap)).toHaveLength(3);
    // The line itself is not kept, but those around it are.
    expect(linesAfter(lines(3, 7), next, 100)).toMatchObject({ missed: false, lines: [{ text: '1 7' }] });
  });

  it('are all of them after a workload had written nothing', () => {
    const begun = linesAfter([], FIRST_CURSOR, 100);
    expect(begun).toEqual({ lines: [], next: FIRST_CURSOR, missed: false });
    expect(linesAfter(range(1, 5), FIRST_CURSOR, 100)).toMatchObject({ missed: false });
    expect(textsOf(linesAfter(range(1, 5), FIRST_CURSOR, 2))).toEqual(['0 1', '1 2']);
    expect(linesAfter(range(1, KEPT_LINES), FIRST_CURSOR, 2)).toMatchObject({ missed: true });
  });

  it.each([
    'x',
    'bm90aGluZw',
    'W10',
    Buffer.from('[1,2]').toString('base64url'),
    Buffer.from('["a"]').toString('base64url'),
  ])('are refused for what is no cursor: %s', (cursor) =>
    expect(() => linesAfter(range(1, 3), cursor, 1)).toThrow('next_after'),
  );
});
