import { expect, it } from 'vitest';
import { PortAllocator } from '../../agent/host/ports.js';

const RANGE = { first: 23_900, last: 23_999 };

const allocator = (held: number[] = []) => new PortAllocator(RANGE, '127.0.0.1', async () => held);

it('a port that was given is not given again before it is released, though nothing listens on it yet', async () => {
  const ports = allocator();
  const first = await ports.choose(3, 'seed', new Set());
  const second = await ports.choose(3, 'seed', new Set());
  expect(new Set([...first, ...second]).size).toBe(6);
  ports.release(first);
  expect(await ports.choose(3, 'seed', new Set())).toEqual(first);
});

it('nor are one that a container holds and one that was refused', async () => {
  const [held = 0, refused = 0, free] = await allocator().choose(3, 'seed', new Set());
  expect(await allocator([held]).choose(1, 'seed', new Set([refused]))).toEqual([free]);
});
