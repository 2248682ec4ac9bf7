import { expect, it } from 'vitest';
import { tickName } from '../../console/src/data/values/times.js';
import { chartsOf, spanOf } from '../../console/src/pages/instance/usage-charts.js';
import { withGaps } from '../../console/src/parts/charts/gaps.js';

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

it('shows how much memory a GPU has, and draws nothing of what was never measured', () => {
  const none = { cpu_cores: [null], cpu_limit_cores: [null], memory_used_bytes: [null], memory_limit_bytes: [null] };
  const others = {
    disk_used_bytes: [null],
    disk_limit_bytes: [null],
    network_in_bytes: [null],
    network_out_bytes: [null],
  };
  const gpu = { index: 0, use_percent: [null], memory_used_bytes: [2], memory_total_bytes: [8], power_watts: [null] };
  const charts = chartsOf({ ...none, ...others, resolution_seconds: 10, gpus: [gpu, { ...gpu, index: 1 }] } as never);
  expect(charts.map(({ title, lines }) => [title, lines])).toEqual([
    [
      'GPU memory',
      [
        { name: 'GPU 0', values: [2] },
        { name: 'GPU 1', values: [2] },
        { name: 'total of each', values: [8] },
      ],
    ],
  ]);
  expect(chartsOf({ ...none, ...others, resolution_seconds: 10, gpus: [] } as never)).toEqual([]);
});

it('has an axis of the whole window', () => {
  expect(spanOf('1h', 7_200_999)).toEqual([3_600, 7_200]);
});
