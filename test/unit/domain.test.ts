import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { burnPerHourMicro } from '../../control-plane/domain/money/burn.js';
import { resendDelayMs } from '../../control-plane/domain/instances/command.js';
import { mergeEnvironment } from '../../control-plane/domain/instances/environment.js';
import {
  allowedActions,
  assertTransition,
  isUp,
  type InstanceStatus,
} from '../../control-plane/domain/instances/instance-state.js';
import { isMaintenanceNear, isNewerVersion, sliceResources } from '../../control-plane/domain/machines/machine.js';
import { isOwnSilence } from '../../control-plane/domain/machines/silence.js';

const STATUSES: InstanceStatus[] = [
  'creating',
  'starting',
  'running',
  'stopping',
  'stopped',
  'destroying',
  'destroyed',
  'error',
];

describe('states', () => {
  const allowed = new Set<string>();
  for (const from of STATUSES) {
    for (const to of STATUSES) {
      try {
        assertTransition(from, to);
        allowed.add(`${from} -> ${to}`);
      } catch {
        // Not an edge.
      }
    }
  }

  it('have exactly these edges', () => {
    expect([...allowed].sort()).toEqual(
      [
        'creating -> destroying',
        'creating -> error',
        'creating -> running',
        'destroying -> destroyed',
        'error -> destroying',
        'running -> destroying',
        'running -> error',
        'running -> stopping',
        'starting -> destroying',
        'starting -> running',
        'starting -> stopped',
        'stopped -> destroying',
        'stopped -> starting',
        'stopping -> destroying',
        'stopping -> running',
        'stopping -> stopped',
      ].sort(),
    );
  });

  it('say which edge it is that does not exist', () => {
    expect(() => assertTransition('destroyed', 'running')).toThrow('no transition from destroyed to running');
  });

  it('show addresses while the workload may be up', () => {
    expect(STATUSES.filter(isUp)).toEqual(['running', 'stopping']);
  });

  it('allow nothing of what is destroyed', () => {
    expect(allowedActions('destroyed')).toEqual([]);
  });

  it('allow stop from running alone, start from stopped alone, destroy from all but destroyed', () => {
    const having = (action: string) =>
      STATUSES.filter((status) => (allowedActions(status) as string[]).includes(action));
    expect(having('stop')).toEqual(['running']);
    expect(having('start')).toEqual(['stopped']);
    expect(having('destroy')).toEqual(STATUSES.filter((status) => status !== 'destroyed'));
  });
});

describe('the burn', () => {
  const rates = { pricePerHourMicro: 1000, storagePricePerGbHourMicro: 3, diskGb: 10 };
  it.each([
    ['creating', 1030],
    ['starting', 1030],
    ['running', 1030],
    ['stopping', 30],
    ['stopped', 30],
    ['error', 0],
    ['destroying', 0],
    ['destroyed', 0],
  ] as const)('of an instance that is %s is %i', (status, expected) => {
    expect(burnPerHourMicro([{ ...rates, status }])).toBe(expected);
  });

  it('adds up', () => {
    expect(
      burnPerHourMicro([
        { ...rates, status: 'running' },
        { ...rates, status: 'stopped' },
      ]),
    ).toBe(1060);
  });
});

describe('the environment', () => {
  const facts = { numGpus: 2, accessToken: 'secret' };
  const entry = (key: string, value: string | null) => ({ key, value, secret: false });
  const merged = (
    template: [string, string | null][],
    overrides: [string, string | null][],
    accessToken: string | null = 'secret',
  ) =>
    Object.fromEntries(
      mergeEnvironment(
        template.map(([key, value]) => entry(key, value)),
        overrides.map(([key, value]) => entry(key, value)),
        { ...facts, accessToken },
      ).map(({ key, value }) => [key, value]),
    );

  it('is template, then overrides, then the platform’s own', () => {
    expect(
      merged(
        [
          ['A', '1'],
          ['B', '2'],
        ],
        [
          ['B', '3'],
          ['C', '4'],
        ],
      ),
    ).toMatchObject({ A: '1', B: '3', C: '4', GPU_COUNT: '2' });
  });

  it('keeps the template’s value where an override is null', () => {
    expect(
      merged(
        [['A', '1']],
        [
          ['A', null],
          ['B', null],
        ],
      ),
    ).toMatchObject({ A: '1' });
    expect(merged([], [['B', null]])).not.toHaveProperty('B');
    expect(merged([['A', null]], [])).not.toHaveProperty('A');
  });

  it('has no token for a template that uses none, whatever the renter says', () => {
    const env = merged(
      [],
      [
        ['SERVICE_ACCESS_TOKEN', 'mine'],
        ['JUPYTER_TOKEN', 'mine'],
      ],
      null,
    );
    expect(env).not.toHaveProperty('SERVICE_ACCESS_TOKEN');
    expect(env).not.toHaveProperty('JUPYTER_TOKEN');
  });

  it('never lets a caller set what is the platform’s', () => {
    const key = fc.constantFrom(
      'GPU_COUNT',
      'SERVICE_ACCESS_TOKEN',
      'JUPYTER_TOKEN',
      'CARRIES',
      'NVIDIA_VISIBLE_DEVICES',
      'NVIDIA_X',
      'OTHER',
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(key, fc.option(fc.string()))), (overrides) => {
        const env = merged([['CARRIES', 'Bearer ${SERVICE_ACCESS_TOKEN}']], overrides);
        expect(env).toMatchObject({
          GPU_COUNT: '2',
          SERVICE_ACCESS_TOKEN: 'secret',
          JUPYTER_TOKEN: 'secret',
          CARRIES: 'Bearer secret',
        });
        expect(Object.keys(env).filter((name) => name.startsWith('NVIDIA_'))).toEqual([]);
      }),
    );
  });
});

describe('machines', () => {
  it('give a slice its part of CPU and memory', () => {
    expect(sliceResources({ cpuCores: 64, memoryMb: 512_000, gpuCount: 8 }, 2)).toEqual({
      cpuMillis: 16_000,
      memoryMb: 128_000,
    });
    expect(sliceResources({ cpuCores: 2, memoryMb: 1000, gpuCount: 0 }, 1)).toEqual({
      cpuMillis: 2000,
      memoryMb: 1000,
    });
  });

  it('compare versions as numbers', () => {
    expect(isNewerVersion('12.10', '12.9')).toBe(true);
    expect(isNewerVersion('12.4', '12.4')).toBe(false);
    expect(isNewerVersion('12.4', '12.4.1')).toBe(false);
    expect(isNewerVersion('12.4.1', '12.4')).toBe(true);
    expect(isNewerVersion('13', '12.9')).toBe(true);
  });

  it('are in maintenance from an hour before to the end of it', () => {
    const window = { startsAt: 10_000_000, endsAt: 20_000_000 };
    expect(isMaintenanceNear(null, 0)).toBe(false);
    expect(isMaintenanceNear(window, window.startsAt - 3_600_001)).toBe(false);
    expect(isMaintenanceNear(window, window.startsAt - 3_600_000)).toBe(true);
    expect(isMaintenanceNear(window, window.endsAt - 1)).toBe(true);
    expect(isMaintenanceNear(window, window.endsAt)).toBe(false);
  });
});

it('commands are sent again ever more seldom, and at least every minute', () => {
  expect([1, 2, 3, 4, 5, 100].map(resendDelayMs)).toEqual([5_000, 10_000, 20_000, 40_000, 60_000, 60_000]);
});

it.each([
  [{ sinceMs: 1_000, hosts: 4, missing: 4 }, false],
  [{ sinceMs: 1_000, hosts: 5, missing: 5 }, true],
  [{ sinceMs: 1_000, hosts: 15, missing: 5 }, false],
  [{ sinceMs: 1_000, hosts: 14, missing: 5 }, true],
  [{ sinceMs: 120_000, hosts: 1, missing: 1 }, false],
  [{ sinceMs: 120_001, hosts: 1, missing: 1 }, true],
])('what is no silence of the hosts: %j is %s', (look, expected) => {
  expect(isOwnSilence(look)).toBe(expected);
});
