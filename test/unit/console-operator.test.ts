import { expect, it } from 'vitest';
import { NEED_KINDS } from '../../control-plane/domain/machines/need.js';
import { findingsOf } from '../../console/src/pages/operator/machines/machine/findings.js';
import { gpuState, machineState, takesInstances } from '../../console/src/pages/operator/machine-state.js';
import type { Gpu, Machine, NeedItem } from '../../console/src/pages/operator/models.js';
import { listOf, shownOf } from '../../console/src/pages/operator/needs.js';
import { filterOf, organizationsSearch } from '../../console/src/pages/operator/organizations/search.js';
import { termsOf } from '../../console/src/pages/operator/offers/terms.js';

const WINDOW = { starts_at: '2026-01-01T00:00:00.000Z', ends_at: '2026-01-03T00:00:00.000Z' };
const NOW = Date.parse('2026-01-02T00:00:00.000Z');

function gpu(fields: Partial<Gpu> = {}): Gpu {
  const free = { healthy: true, reason: null, disputed_with: null, instance_id: null, quarantine_id: null };
  const traits = { uuid: 'GPU-1', model: 'H100', memory_mb: 81_920, missing: false, shares_memory: false };
  return { ...traits, ...free, ...fields };
}

function machine(fields: Partial<Machine> = {}): Machine {
  const well = { connected: true, lost: false, cordoned: false, obstacle: null, maintenance: null };
  const disks = { disk_quota: 'enforced', disk_quota_waived: false };
  return { id: 'm', name: 'rack', last_seen_at: null, gpus: [gpu()], ...well, ...disks, ...fields } as Machine;
}

it('says what a GPU is by the first that holds, and how its machine is', () => {
  const sold = gpu({ instance_id: 'i' });
  const machines = [
    machine({ connected: false, gpus: [sold, gpu({ healthy: false })] }),
    machine({ connected: false, lost: true, gpus: [sold] }),
    machine({ gpus: [sold, gpu(), gpu({ healthy: false, instance_id: 'i' }), gpu({ quarantine_id: 'q' })] }),
    machine({ cordoned: true, gpus: [sold, gpu()] }),
    machine({ maintenance: WINDOW }),
    machine({ gpus: [gpu({ model: 'A10' })] }),
    machine({ connected: false, cordoned: true, maintenance: WINDOW, gpus: [gpu({ healthy: false })] }),
    machine({ cordoned: true, disk_quota: 'none', gpus: [gpu(), gpu({ healthy: false })] }),
    machine({ gpus: [gpu({ healthy: false, missing: true, instance_id: 'i' }), gpu({ healthy: false })] }),
  ];
  expect(machines.map((each) => each.gpus.map((one) => gpuState(each, one, NOW)))).toEqual([
    ['sold', 'away'],
    ['away'],
    ['sold', 'free', 'unhealthy', 'quarantine'],
    ['sold', 'held back'],
    ['held back'],
    ['free'],
    ['away'],
    ['held back', 'unhealthy'],
    ['missing', 'unhealthy'],
  ]);
  expect(machines.map((each) => machineState(each, NOW).words)).toEqual([
    'away, 1 GPU unhealthy',
    'lost',
    'connected, 1 GPU unhealthy',
    'connected, cordoned',
    'connected, in maintenance',
    'connected',
    'away, cordoned, in maintenance, 1 GPU unhealthy',
    'connected, cordoned, it does not limit the disks of renters, 1 GPU unhealthy',
    'connected, 1 GPU missing, 1 GPU unhealthy',
  ]);
  expect(machines.map((each) => takesInstances(each, NOW))).toEqual(
    machines.map(
      (each) => machineState(each, NOW).words.replace(/(, 1 GPU (missing|unhealthy))+$/, '') === 'connected',
    ),
  );
});

it('names each GPU that is missing or unhealthy, once', () => {
  const lost = gpu({ uuid: 'GPU-2', healthy: false, missing: true, reason: 'its driver no longer lists it' });
  const hot = gpu({ uuid: 'GPU-3', healthy: false, reason: 'Xid 79' });
  expect(findingsOf(machine({ gpus: [gpu(), lost, hot], upgrade_to: null }))).toEqual([
    'H100 GPU-2 is missing: the driver of the host no longer lists it. Check its slot and its power.',
    'H100 GPU-3 is unhealthy: Xid 79',
  ]);
});

const item = (fields: Partial<NeedItem>): NeedItem => ({
  subject: '',
  name: null,
  message: null,
  since: null,
  machine_id: null,
  organization_id: null,
  ...fields,
});

it('says each need in words, with the place where it can be mended', () => {
  const rack = item({ subject: 'machines/m', name: 'rack', machine_id: 'm' });
  const acme = item({ subject: 'orgs/o', name: 'Acme', organization_id: 'o' });
  const shown = [
    shownOf('clock_untrusted', item({})),
    shownOf('worker_failing', item({ name: 'meter', message: 'disk full' })),
    shownOf('machine_away', rack),
    shownOf('machine_refusing', { ...rack, message: 'no space' }),
    shownOf('workload_quarantined', rack),
    shownOf('stop_ignored', { ...rack, organization_id: 'o' }),
    shownOf('payment_disputed', acme),
    shownOf('what a later release knows' as 'machine_away', rack),
  ];
  expect(shown.map(({ words, why, link }): unknown[] => [words, why, link?.to])).toEqual([
    ['The clock is not trusted', 'Time-outs wait until you confirm it.', undefined],
    [
      'The background worker meter fails',
      expect.stringMatching(/^disk full\. It runs again/),
      '/operator/control-plane',
    ],
    ['rack is away', 'Its agent is not connected. Its workloads keep running.', '/operator/machines/$id'],
    ['rack takes no instances', 'no space.', '/operator/machines/$id'],
    ['rack has a workload in quarantine', expect.any(String), '/operator/quarantine'],
    [
      expect.stringContaining('An instance on rack was charged after a stop'),
      'Credit its renter.',
      '/operator/ignored-stops',
    ],
    ['Acme disputes a payment', 'It can neither deploy nor start.', '/operator/organizations/$id'],
    ['rack: what a later release knows', '', '/operator/machines/$id'],
  ]);
  for (const kind of NEED_KINDS) {
    expect(shownOf(kind, rack).words).not.toContain(kind);
    expect(listOf(kind)).toBeDefined();
    // The act on the clock has a button of its own.
    if (kind !== 'clock_untrusted') expect(shownOf(kind, item({ machine_id: 'm' })).link, kind).toBeDefined();
  }
  for (const kind of ['settlement_late', 'mail_waiting'] as const)
    expect(shownOf(kind, item({})).link?.to).toBe('/operator/control-plane');
  const stuck = shownOf('command_stuck', { ...rack, organization_id: 'o' }).link;
  expect(stuck).toMatchObject({ to: '/operator/instances', search: { waiting: true, machine: 'm' } });
  expect(listOf('command_stuck')).toMatchObject({ to: '/operator/instances', search: { waiting: true } });
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
