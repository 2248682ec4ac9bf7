import { expect, it } from 'vitest';
import {
  failuresAfter,
  heldBackOn,
  slowImageBackOffMs,
  slowImageSource,
  type SlowPulls,
} from '../../control-plane/domain/instances/slow-image.js';

it.each([
  ['nginx', 'docker.io/library/nginx'],
  ['nginx:1.27', 'docker.io/library/nginx'],
  ['library/nginx', 'docker.io/library/nginx'],
  ['docker.io/library/nginx', 'docker.io/library/nginx'],
  ['index.docker.io/nginx', 'docker.io/library/nginx'],
  [`team/app:1@sha256:${'a'.repeat(64)}`, 'docker.io/team/app'],
  ['ghcr.io/team/app:1', 'ghcr.io'],
  ['a1.Registry.example.com:5000/x:2', 'example.com'],
  ['a2.registry.example.com:5001/y', 'example.com'],
  ['a.registry.lan1/x', 'registry.lan1'],
  ['1.registry.example.com/x', 'example.com'],
  ['203.0.113.9:5000/x', '203.0.113.9'],
  ['[2001:db8:1:2::3]:5000/x', '2001:db8:1::/48'],
  ['localhost:5000/x', 'localhost'],
  ['no reference!', 'no reference!'],
])('a slow pull of %s counts for %s', (image, source) => {
  expect(slowImageSource(image)).toBe(source);
});

it('waits ten minutes at first and a day at most', () => {
  const minutes = [1, 2, 3, 8, 9, 10, 10_000].map((failures) => slowImageBackOffMs(failures) / 60_000);
  expect(minutes).toEqual([10, 20, 40, 1_280, 1_440, 1_440, 1_440]);
});

const slow = (machine_id: string, failures: number, failed_at: number, retry_at: number): SlowPulls => ({
  machine_id,
  failures,
  failed_at,
  retry_at,
});

it.each<[string, SlowPulls[], string, [number, boolean] | undefined]>([
  ['nothing', [], 'a', undefined],
  ['its own failure', [slow('a', 3, 1, 90)], 'a', [90, true]],
  ['no failure of one other machine, however often', [slow('a', 9, 1, 90)], 'b', undefined],
  ['two failures elsewhere, until one of them is over', [slow('a', 9, 1, 90), slow('b', 1, 2, 50)], 'c', [50, false]],
  ['its own failure for longer', [slow('a', 9, 1, 90), slow('b', 1, 2, 50)], 'a', [90, false]],
  ['the others’ for longer', [slow('a', 1, 1, 60), slow('b', 1, 1, 90), slow('c', 1, 1, 80)], 'a', [80, false]],
  ['none that is over', [slow('a', 1, 1, 30), slow('b', 1, 2, 50)], 'c', undefined],
  ['none from the future', [slow('a', 1, 41, 90), slow('b', 1, 2, 50)], 'c', undefined],
])('a machine is held back by %s', (_, known, machine, held) => {
  const found = heldBackOn(machine, known, 40);
  expect(found && [found.until, found.isOnlyThere]).toEqual(held);
});

it.each<[string, SlowPulls[], string, number, number | null]>([
  ['the first', [], 'a', 10, 1],
  ['another on the same machine', [slow('a', 1, 5, 9)], 'a', 10, 2],
  ['one that was under way there together with another', [slow('a', 1, 15, 19)], 'a', 10, null],
  ['the first on a second machine, whatever the first one says', [slow('a', 7, 5, 9)], 'b', 10, 1],
  ['one on a third machine, of what two say', [slow('a', 7, 5, 9), slow('b', 2, 5, 9)], 'c', 10, 3],
  ['one that was under way together with others', [slow('a', 1, 15, 19), slow('b', 1, 16, 20)], 'c', 10, 1],
])('so many failures count after %s', (_, known, machineId, deployedAt, failures) => {
  expect(failuresAfter({ machineId, deployedAt }, known)).toBe(failures);
});
