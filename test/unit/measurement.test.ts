import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HOUR_MS } from '../../shared/time.js';
import { History } from '../../agent/measurements/history.js';
import { PointRing } from '../../agent/measurements/ring.js';
import { diskStepOf, isHigherStep } from '../../control-plane/domain/instances/disk-filling.js';
import {
  mergeUses,
  packUses,
  rowOf,
  unpackUses,
  type TimedUse,
} from '../../control-plane/domain/instances/measurement.js';
import { instanceMetrics } from '../../control-plane/http/metrics/instance-metrics.js';
import { hoursOf } from '../../control-plane/services/measurements/keep.js';
import { AgentMessage } from '../../shared/gen/gpurent/agent/v1/agent.js';
import {
  MEASURED_FIELDS,
  MEASURED_GPU_FIELDS,
  fromMeasurement,
  summarize,
  toMeasurement,
  unmeasured,
  type GpuUse,
  type Use,
} from '../../shared/measurement.js';

const value = fc.option(fc.oneof(fc.nat(100), fc.integer({ min: 0, max: 1e15 })), { nil: null });
const gpuUse = fc.record(Object.fromEntries(MEASURED_GPU_FIELDS.map((name) => [name, value]))) as fc.Arbitrary<GpuUse>;
const anyUse = fc
  .tuple(
    fc.record(Object.fromEntries(MEASURED_FIELDS.map((name) => [name, value]))),
    fc.array(gpuUse, { maxLength: 3 }),
  )
  .map(([fields, gpus]) => ({ ...fields, gpus }) as Use);

const use = (fields: Partial<Use> = {}, ...gpus: Partial<GpuUse>[]): Use => ({
  ...unmeasured(0),
  ...fields,
  gpus: gpus.map((gpu) => ({ ...unmeasured(1).gpus[0], ...gpu }) as GpuUse),
});

describe('packing', () => {
  it('gives back what was packed, whatever was not measured', () => {
    const list = fc.array(fc.record({ at: fc.integer({ min: 0, max: 4e12 }), use: anyUse }), { maxLength: 20 });
    fc.assert(
      fc.property(list, (uses) => {
        expect(unpackUses(packUses(uses))).toEqual(uses);
      }),
    );
  });

  it('takes few bytes for a minute', () => {
    const minute = (index: number): TimedUse => ({
      at: 1_767_225_600_000 + index * 60_000 + (index % 7),
      use: use(
        {
          cpuMillis: 3e3 + (index % 9) * 31,
          cpuMaxMillis: 3900,
          cpuLimitMillis: 8e3,
          memoryUsedBytes: 31e9 + index * 40960,
          memoryLimitBytes: 64e9,
          diskUsedBytes: 5e9 + index * 8192,
          diskLimitBytes: 1e11,
          networkInBytes: 12e4 + index * 977,
          networkOutBytes: 8e4 + index * 13,
          sshSessions: 1,
          portConnections: index % 3,
        },
        {
          usePercent: 90 + (index % 10),
          useMaxPercent: 100,
          memoryUsedBytes: 7e10,
          memoryTotalBytes: 8e10,
          powerWatts: 400 + (index % 20),
          temperatureCelsius: 60 + (index % 3),
        },
      ),
    });
    const packed = packUses(Array.from({ length: 60 }, (_, index) => minute(index)));
    expect(packed.length / 60).toBeLessThan(40);
  });

  it('refuses bytes that are cut short or of another version', () => {
    const packed = packUses([{ at: 1, use: use({ cpuMillis: 5 }) }]);
    expect(() => unpackUses(packed.subarray(0, 5))).toThrow(/too early/);
    expect(() => unpackUses(Buffer.from([9, ...packed.subarray(1)]))).toThrow(/unknown version, 9/);
    expect(() => unpackUses(Buffer.alloc(0))).toThrow(/unknown version, none/);
  });
});

describe('a use of a longer span', () => {
  it('has means, highest values, sums and the latest limits', () => {
    const parts = [
      use(
        { cpuMillis: 100, cpuMaxMillis: 100, cpuLimitMillis: 8, networkInBytes: 5, memoryUsedBytes: 9, sshSessions: 1 },
        { usePercent: 10, useMaxPercent: 10, temperatureCelsius: 50, powerWatts: 100 },
      ),
      use(
        { cpuMillis: 301, cpuMaxMillis: 301, cpuLimitMillis: 4, networkInBytes: 6, memoryUsedBytes: 7, sshSessions: 0 },
        { usePercent: 80, useMaxPercent: 80, temperatureCelsius: 40, powerWatts: 301 },
      ),
    ];
    expect(summarize(parts)).toEqual(
      use(
        {
          cpuMillis: 201,
          cpuMaxMillis: 301,
          cpuLimitMillis: 4,
          networkInBytes: 11,
          memoryUsedBytes: 9,
          sshSessions: 1,
        },
        { usePercent: 45, useMaxPercent: 80, temperatureCelsius: 50, powerWatts: 201 },
      ),
    );
  });

  it('has no highest value where one part was not measured, for it must not look idle; and nothing of nothing', () => {
    const parts = [
      use({ cpuMillis: 0, cpuMaxMillis: 0, sshSessions: 0, portConnections: 0 }, { usePercent: 0, useMaxPercent: 0 }),
      use({ cpuMillis: 10 }),
    ];
    expect(summarize(parts)).toEqual(use({ cpuMillis: 5 }, { usePercent: 0 }));
    expect(summarize([])).toEqual(unmeasured(0));
    expect(summarize([unmeasured(2)])).toEqual(unmeasured(2));
  });
});

it('the wire carries every value, and nothing where nothing was measured', () => {
  fc.assert(
    fc.property(anyUse, (sent) => {
      const message = {
        $case: 'measurementReport' as const,
        value: { instances: [{ instanceId: 'i', minutes: [toMeasurement(sent, 5)] }] },
      };
      const { message: heard } = AgentMessage.decode(AgentMessage.encode({ message }).finish());
      const [minute] = heard?.$case === 'measurementReport' ? (heard.value.instances[0]?.minutes ?? []) : [];
      expect(minute && fromMeasurement(minute)).toEqual(sent);
    }),
  );
});

describe('what a host keeps', () => {
  it('is the newest points, whatever came before', () => {
    const ring = new PointRing(1, 3);
    expect(ring.list()).toEqual([]);
    const points = [1, 2, 3, 4, 5].map((at) => ({ at, use: use({ cpuMillis: at }, { usePercent: at }) }));
    for (const point of points) ring.add(point);
    expect(ring.list()).toEqual(points.slice(2));
  });

  it('is an hour of points and of minutes', () => {
    const history = new History(0);
    for (let at = 0; at < 3 * HOUR_MS; at += 10_000) {
      history.add({ at, use: use({ cpuMillis: 1 }) });
      if (at % 60_000 === 50_000) history.endMinute();
    }
    expect(history.points(3 * HOUR_MS)).toHaveLength(360);
    expect(history.points(3.5 * HOUR_MS)).toHaveLength(180);
    expect(history.unsent(1_000)).toHaveLength(60);
    expect(history.unsent(7)).toHaveLength(7);
  });

  it('is sent once, and the last twelve minutes again after a connect', () => {
    const history = new History(0);
    for (let minute = 1; minute <= 30; minute++) {
      history.add({ at: minute * 60_000, use: use({}) });
      history.endMinute();
    }
    for (const minute of history.unsent(1_000)) minute.isSent = true;
    expect(history.unsent(1_000)).toEqual([]);
    history.endMinute();
    expect(history.unsent(1_000)).toEqual([]);
    history.sendAgain(30 * 60_000);
    expect(history.unsent(1_000).map(({ endedAt }) => endedAt / 60_000)).toEqual([
      18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
    ]);
  });
});

describe('minutes', () => {
  const at = (...times: number[]) => times.map((time) => ({ at: time, use: use() }));

  it('that come again, or too close, are left out', () => {
    const merged = mergeUses(at(0, 60_000), at(59_000, 120_000, 121_000, -60_000));
    expect(merged.map((each) => each.at)).toEqual([-60_000, 0, 60_000, 120_000]);
  });

  it('belong to the hour in which they end, a full hour to its last', () => {
    expect(rowOf('minute', HOUR_MS)).toBe(0);
    expect(rowOf('minute', HOUR_MS + 1)).toBe(HOUR_MS);
    expect(hoursOf(at(1, HOUR_MS, HOUR_MS + 1)).map((each) => each.at)).toEqual([HOUR_MS, 2 * HOUR_MS]);
  });
});

it.each([
  [50, null, null],
  [89.9, null, null],
  [90, null, 90],
  [97.9, null, 90],
  [99, null, 98],
  [99, 90, 98],
  [95, 90, 90],
  [86, 90, 90],
  [84.9, 90, null],
  [97, 98, 98],
  [93, 98, 98],
  [92.9, 98, 90],
  [10, 98, null],
] as const)('a disk that is %s percent full, after %s was told, is at the step %s', (percent, told, step) => {
  expect(diskStepOf(percent, told)).toBe(step);
});

it('only a higher step is told', () => {
  expect([isHigherStep(90, null), isHigherStep(98, 90), isHigherStep(90, 98), isHigherStep(null, 90)]).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

it('metrics name each instance and GPU, without what was not measured, and no label breaks out', () => {
  const label = 'a"} 1\ngpurent_instance_cpu_cores{x="\\';
  const text = instanceMetrics([
    { id: 'one', label, use: use({ cpuMillis: 1_500 }, { usePercent: 25 }, { usePercent: null }, { usePercent: 0 }) },
    { id: 'two', label: null, use: use({}) },
  ]);
  const escaped = 'a\\"} 1\\ngpurent_instance_cpu_cores{x=\\"\\\\';
  expect(text.split('\n').filter((line) => !line.startsWith('#') || /cpu_cores|use_ratio/.test(line))).toEqual([
    '# HELP gpurent_instance_cpu_cores Cores that compute',
    '# TYPE gpurent_instance_cpu_cores gauge',
    `gpurent_instance_cpu_cores{instance_id="one",label="${escaped}"} 1.5`,
    '# HELP gpurent_instance_gpu_use_ratio Share of the time in which the GPU computes',
    '# TYPE gpurent_instance_gpu_use_ratio gauge',
    `gpurent_instance_gpu_use_ratio{instance_id="one",label="${escaped}",gpu="0"} 0.25`,
    `gpurent_instance_gpu_use_ratio{instance_id="one",label="${escaped}",gpu="2"} 0`,
    '',
  ]);
  expect(instanceMetrics([])).not.toMatch(/^[^#]/m);
});
