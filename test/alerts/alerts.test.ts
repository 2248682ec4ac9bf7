import { expect, it } from 'vitest';
import { alerts, cases, provoke } from './provoke.js';

/** What holds up everything that runs beside it: busy.test.ts has it. */
const ALONE = 'GpurentEventLoopLags';

it('every rule has a case', () => {
  expect(Object.keys(cases).sort()).toEqual([...alerts].sort());
});

const beside = alerts.filter((alert) => alert !== ALONE);
const all = beside.flatMap((alert) => (cases[alert] ?? []).map((one) => [alert, one.how, one] as const));

it.concurrent.each(all)('%s: %s', (alert, _, one) => provoke(alert, one));
