import fc from 'fast-check';
import { expect, it } from 'vitest';
import { billingSearch } from '../../console/src/pages/billing/search.js';
import { seriesOf, sumOf } from '../../console/src/pages/billing/sums.js';
import { contentOf, draftOf, faultsOf, newVariable } from '../../console/src/parts/template-editor/draft.js';
import type { Template } from '../../console/src/data/api/models.js';

const micros = fc.integer({ min: 0, max: 10 ** 12 });
const charges = fc.array(fc.record({ gpu_micro: micros, disk_micro: micros }), { maxLength: 366 });

it('adds up charges to the micro-dollar', () => {
  fc.assert(
    fc.property(charges, (rows) => {
      const exact = rows.reduce((sum, row) => sum + BigInt(row.gpu_micro) + BigInt(row.disk_micro), 0n);
      expect(BigInt(sumOf(rows).total_micro)).toBe(exact);
    }),
  );
});

it('draws the balance to zero exactly when it is used up, with times in order', () => {
  const day = (date: string) => ({ date, gpu_micro: 5, disk_micro: 1 });
  const now = Date.parse('2026-11-24T12:00:00.000Z');
  const days = [day('2026-11-23'), day('2026-11-24')];
  const series = seriesOf(days, 2_000_000, 1_000_000, now);
  expect(series.at.map((seconds) => seconds * 1_000)).toEqual([
    ...days.map(({ date }) => Date.parse(date)),
    now,
    now + 7_200_000,
  ]);
  expect(series.balance).toEqual([null, null, 2_000_000, 0]);
  expect([series.total, series.disk]).toEqual([
    [6, 6, 6, null],
    [1, 1, 1, null],
  ]);
  fc.assert(
    fc.property(
      fc.integer({ min: -(10 ** 9), max: 10 ** 12 }),
      fc.nat(10 ** 9),
      fc.nat(10 ** 9),
      (balance, burn, ahead) => {
        const drawn = seriesOf(days, balance, burn, now + ahead - 5 * 10 ** 8);
        expect([...drawn.at].sort((a, b) => a - b)).toEqual(drawn.at);
        expect(drawn.balance.every((value) => value === null || value >= 0)).toBe(true);
      },
    ),
  );
});

const TEMPLATE = {
  name: 'a',
  description: 'b',
  image: 'c:1',
  kind: 'container',
  mode: ['jupyter'],
  visibility: 'public',
  ssh_user: 'me',
  cuda_min: '12.1',
  cuda_max: '12.4',
  command: ['sh', '-c', 'a\nb'],
  onstart: 'x\ny',
  readme: '# z',
  env: [
    {
      key: 'A',
      value: 'x\ny',
      secret: false,
    },
    {
      key: 'B',
      value: null,
      secret: true,
    },
  ],
  ports: [
    {
      port: 80,
      protocol: 'tcp',
      label: 'web',
      open_button: false,
      guard: 'none',
    },
  ],
  registry_private: true,
} as Partial<Template> as Template;

it('sends a template that nobody has touched as it was, without what nobody can read', () => {
  const { registry_private: _, visibility: __, ...content } = TEMPLATE;
  const draft = draftOf(TEMPLATE);
  expect(faultsOf(draft)).toEqual({});
  expect(contentOf(draft, TEMPLATE)).toEqual(content);
  expect(contentOf({ ...draft, command: 'sh\n-x\n' }, TEMPLATE).command).toEqual(['sh', '-x']);
  expect(contentOf({ ...draft, registry: { ...draft.registry, choice: 'none' } }, TEMPLATE).registry).toBeNull();
});

it('never makes a kept secret a value that all see, and finds what is missing', () => {
  const draft = draftOf();
  expect(Object.keys(faultsOf(draft))).toEqual(['name', 'image']);
  const nameless = { ...newVariable(), value: 'x' };
  expect(Object.values(faultsOf({ ...draft, name: 'a', image: 'b', env: [nameless] }))).toEqual([
    'Give the variable a name.',
  ]);
  const [secret] = draftOf(TEMPLATE).env.slice(1);
  const shown = secret && { ...secret, secret: false };
  expect(contentOf({ ...draft, env: shown ? [shown] : [] }).env).toEqual([{ key: 'B', value: '', secret: false }]);
});

it('reads of an address only what it knows', () => {
  expect(billingSearch({ tab: 'spend', by: 'x', from: '2026-11-24', to: 'soon', pay: 'yes', other: 1 })).toEqual({
    tab: 'spend',
    from: '2026-11-24',
  });
});
