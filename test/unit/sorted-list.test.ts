import fc from 'fast-check';
import { expect, it } from 'vitest';
import { SortedList } from '../../control-plane/domain/catalogue/sorted-list.js';

it('holds what was added and not removed since, in order', () => {
  const steps = fc.array(fc.record({ value: fc.integer({ min: 0, max: 30 }), isAdded: fc.boolean() }), {
    maxLength: 200,
  });
  fc.assert(
    fc.property(steps, (all) => {
      const list = new SortedList<number>((a, b) => a - b);
      const expected = new Set<number>();
      for (const { value, isAdded } of all) {
        if (!isAdded) list.remove(value);
        else if (!expected.has(value)) list.add(value);
        if (isAdded) expected.add(value);
        else expected.delete(value);
        expect(list.items).toEqual([...expected].sort((a, b) => a - b));
      }
    }),
  );
});
