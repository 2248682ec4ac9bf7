import { expect, it } from 'vitest';
import { lasting } from '../../client/cli/output/lasting.js';
import { coverage } from '../../client/mcp/money.js';

const NOW = Date.parse('2026-11-25T00:00:00.000Z');
const END = '2026-11-25T02:30:00.000Z';

it.each([
  ['its end is known', 10_000_000, 4_000_000, END, 'lasts 2 h 30 min', `lasts until ${END}`],
  ['its end is over', 0, 4_000_000, '2026-11-24T23:00:00.000Z', 'used up', 'lasts until'],
  ['nothing is metered yet', 10_000_000, 4_000_000, null, 'lasts 2 h 30 min', 'lasts 150 minutes'],
  ['nothing is left for that', 0, 4_000_000, null, 'used up', 'used up'],
  ['it lasts for a century', 10_000_000, 1, null, 'lasts more than 100 years', 'lasts more than 100 years'],
  ['nothing is charged', 10_000_000, 0, null, 'nothing is charged', 'nothing uses it up'],
  ['an earlier release does not say', 10_000_000, undefined, null, 'nothing is charged', 'nothing uses it up'],
])('says how long a balance lasts if %s', (_, balance, charged, until, line, toAgents) => {
  expect(lasting({ balanceMicro: balance, chargedMicro: charged, until }, NOW)).toContain(line);
  expect(coverage({ balance_micro: balance, charged_per_hour_micro: charged, lasts_until: until })).toContain(toAgents);
});
