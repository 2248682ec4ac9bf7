import { expect, it } from 'vitest';
import { HelloQueue } from '../../control-plane/grpc/hello-queue.js';

const PER_TURN = 8;
const MOST = 8_192;
const MOST_UNITS = 16_384;

function queue() {
  const turns: (() => void)[] = [];
  const ran: number[] = [];
  const hellos = new HelloQueue((run) => turns.push(run));
  const add = (index: number, units = 1) => hellos.add(() => void ran.push(index), units);
  return { add, ran, nextTurn: () => turns.shift()?.(), turns };
}

it('takes a few hellos at once and the others in later turns, in their order', () => {
  const { add, ran, nextTurn, turns } = queue();
  for (let index = 0; index < 3 * PER_TURN; index++) expect(add(index)).toBe(true);
  expect(ran).toHaveLength(PER_TURN);
  nextTurn();
  expect(ran).toHaveLength(2 * PER_TURN);
  // Whoever comes meanwhile goes behind those that wait.
  add(99);
  nextTurn();
  nextTurn();
  expect(ran).toEqual([...Array.from({ length: 3 * PER_TURN }, (_, index) => index), 99]);
  nextTurn();
  expect(turns).toHaveLength(0);
});

it('lets no more wait than can be answered in time', () => {
  const { add, nextTurn, ran } = queue();
  for (let index = 0; index < PER_TURN + MOST; index++) expect(add(index)).toBe(true);
  expect(add(-1)).toBe(false);
  nextTurn();
  expect(add(-2)).toBe(true);
  for (let turn = 0; turn <= MOST / PER_TURN + 1; turn++) nextTurn();
  expect(ran).toHaveLength(PER_TURN + MOST + 1);
  expect(ran).not.toContain(-1);
});

it('bounds the size of those that wait', () => {
  const { add, nextTurn } = queue();
  for (let index = 0; index < PER_TURN; index++) add(index);
  const large = MOST_UNITS / 4;
  for (let index = 0; index < 4; index++) expect(add(index, large)).toBe(true);
  expect(add(5, 1)).toBe(false);
  nextTurn();
  for (let index = 0; index < PER_TURN; index++) add(index);
  expect(add(6, large)).toBe(true);
});
