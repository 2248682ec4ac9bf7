import { expect, it } from 'vitest';
import { slowImageBackOffMs, slowImageSource } from '../../control-plane/domain/slow-image.js';

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
