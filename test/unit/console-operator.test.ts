import { expect, it } from 'vitest';
import { gpuSums, machineState } from '../../console/src/pages/operator/machine-state.js';
import type { Gpu, Machine } from '../../console/src/pages/operator/models.js';
import { needsOf, type Situation } from '../../console/src/pages/operator/needs.js';
import { filterOf, organizationsSearch } from '../../console/src/pages/operator/organizations/search.js';
import { termsOf } from '../../console/src/pages/operator/offers/terms.js';

const NOW = Date.parse('2026-01-02T00:00:00.000Z');

function gpu(fields: Partial<Gpu> = {}): Gpu {
  const free = { healthy: true, reason: null, instance_id: null, quarantine_id: null };
  return { uuid: 'GPU-1', model: 'H100', memory_mb: 81_920, ...free, ...fields };
}

function machine(fields: Partial<Machine> = {}): Machine {
  const well = { connected: true, lost: false, cordoned: false, obstacle: null, maintenance: null };
  const disks = { disk_quota: 'enforced', disk_quota_waived: false };
  return { id: 'm', name: 'rack', last_seen_at: null, gpus: [gpu()], ...well, ...disks, ...fields } as Machine;
}

const CALM: Situation = {
  machines: [machine()],
  quarantine: [],
  waiting: [],
  organizations: [],
  workers: [],
  ignoredStops: [],
  clock: { held: false, stepped_ms: null, since: null },
};

it('counts each GPU once, by the first that holds', () => {
  const sold = gpu({ instance_id: 'i' });
  const machines = [
    machine({ connected: false, gpus: [sold, gpu({ healthy: false })] }),
    machine({ gpus: [sold, gpu(), gpu({ healthy: false, instance_id: 'i' }), gpu({ quarantine_id: 'q' })] }),
    machine({ cordoned: true, gpus: [sold, gpu()] }),
    machine({ maintenance: { starts_at: '2026-01-01T00:00:00.000Z', ends_at: '2026-01-03T00:00:00.000Z' } }),
    machine({ gpus: [gpu({ model: 'A10' })] }),
  ];
  const none = { away: 0, unhealthy: 0, quarantine: 0, sold: 0, 'held back': 0, free: 0 };
  expect(gpuSums(machines, NOW)).toEqual([
    ['A10', { ...none, free: 1 }],
    ['H100', { away: 2, unhealthy: 1, quarantine: 1, sold: 2, 'held back': 2, free: 1 }],
  ]);
  expect(machines.map((each) => machineState(each, NOW).words)).toEqual([
    'away',
    'connected, 1 GPU unhealthy',
    'connected, cordoned',
    'connected, in maintenance',
    'connected',
  ]);
});

it('lists nothing while all is well, and each need where it can be mended', () => {
  expect(needsOf(CALM)).toEqual([]);
  const since = '2026-01-01T00:00:00.000Z';
  const of = { machine_id: 'm', machine_name: 'rack', organization_id: 'o' };
  const waits = (reason: string) => ({ id: reason, ...of, waits_for: { command: 'stop', since, reason, message: '' } });
  const situation = {
    machines: [
      machine({ lost: true, connected: false }),
      machine({ connected: false }),
      machine({ gpus: [gpu({ healthy: false, reason: 'Xid 79' })], obstacle: 'Docker is down', disk_quota: 'none' }),
      machine({ disk_quota: 'none', disk_quota_waived: true }),
    ],
    quarantine: [
      { id: 'q', ...of, removal_requested_at: null },
      { id: 'r', ...of, removal_requested_at: since },
    ],
    waiting: [waits('not_answered'), waits('under_way')],
    organizations: [
      { id: 'o', name: 'Acme', payments_frozen: true },
      { id: 'p', name: 'Other', payments_frozen: false },
    ],
    workers: [
      { name: 'meter', failing: true, last_failure: 'disk full', last_failure_at: since },
      { name: 'mail', failing: false },
    ],
    ignoredStops: [{ instance_id: 'i', ...of, since }],
    clock: { held: true, stepped_ms: 9, since },
  } as unknown as Situation;
  expect(needsOf(situation).map(({ words, link }): unknown[] => [words, link?.to])).toEqual([
    ['The clock is not trusted', undefined],
    ['The background worker meter fails', undefined],
    ['rack is lost and not removed', '/operator/machines/$id'],
    ['rack is away', '/operator/machines/$id'],
    ['rack has 1 unhealthy GPU', '/operator/machines/$id'],
    ['rack takes no instances', '/operator/machines/$id'],
    ['rack is not offered', '/operator/machines/$id'],
    ['rack has not done stop for an instance', '/operator/machines/$id'],
    ['rack has a workload in quarantine', '/operator/quarantine'],
    ['Acme disputes a payment', '/operator/organizations/$id'],
    [expect.stringContaining('charged after a stop') as string, '/operator/organizations/$id'],
  ]);
});

it('reads the terms of an offer exactly, or says which field is wrong', () => {
  expect(termsOf({ price: '1.333333', storage: '0.0001', release: '' })).toEqual({
    terms: {
      price_per_hour_micro: 1_333_333,
      storage_price_per_gb_hour_micro: 100,
      release_stopped_after_hours: null,
    },
  });
  const wrong = termsOf({ price: '1.3333333', storage: '', release: '1.5' });
  expect(Object.keys('faults' in wrong ? wrong.faults : {})).toEqual(['price', 'storage', 'release']);
});

it('looks for organizations by a name, or by the address of a member', () => {
  expect(filterOf(organizationsSearch({ find: 'acme' }))).toEqual({ name: 'acme' });
  expect(filterOf(organizationsSearch({ find: 'ada@' }))).toEqual({ member_email: 'ada@' });
  expect(filterOf(organizationsSearch({ find: 'ada', by: 'member' }))).toEqual({ member_email: 'ada' });
  // The router reads digits in the address as a number.
  expect(filterOf(organizationsSearch({ find: 42 }))).toEqual({ name: '42' });
  for (const nothing of [{}, { find: '' }, { find: ['a'] }, { find: 'x'.repeat(255) }, { by: 'member' }])
    expect(filterOf(organizationsSearch(nothing))).toEqual({});
});
