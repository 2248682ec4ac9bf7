import { expect, it } from 'vitest';
import { tickName } from '../../console/src/data/times.js';
import { chartsOf } from '../../console/src/pages/instance/usage-charts.js';
import { withGaps } from '../../console/src/parts/gaps.js';

it('names the ticks of an axis by a clock of 24 hours, and days where they begin', () => {
  const at = (time: string) => Date.parse(time) / 1_000;
  expect(tickName(at('2026-11-25T16:05:00.000Z'), 300, 'UTC')).toBe('16:05');
  expect(tickName(at('2026-11-25T16:05:20.000Z'), 20, 'UTC')).toBe('16:05:20');
  expect(tickName(at('2026-11-25T00:00:00.000Z'), 3_600, 'UTC')).toBe('25 Nov');
  expect(tickName(at('2026-11-25T11:00:00.000Z'), 3_600, 'Pacific/Auckland')).toBe('26 Nov');
});

it('draws nothing over what was not measured', () => {
  expect(withGaps([0, 10, 25, 41], [[1, 2, 3, 4]], 10)).toEqual([
    [0, 10, 25, 35, 41],
    [1, 2, 3, null, 4],
  ]);
  expect(withGaps([], [[]], 10)).toEqual([[], []]);
});

it('shows the network in bytes per second, whatever the span of a value', () => {
  const nothing = { gpus: [], cpu_cores: [], cpu_limit_cores: [], memory_used_bytes: [], memory_limit_bytes: [] };
  const usage = { ...nothing, disk_used_bytes: [], disk_limit_bytes: [], resolution_seconds: 60 };
  const [network] = chartsOf({ ...usage, network_in_bytes: [61_440, null], network_out_bytes: [0, 0] } as never);
  expect(network?.title).toBe('Network, mean of 1\u00a0min');
  expect(network?.lines.map(({ values }) => values)).toEqual([
    [1_024, null],
    [0, 0],
  ]);
  expect(network?.unit(1_024)).toBe('1.0 KiB/s');
});
