import { afterEach, beforeEach, expect, it } from 'vitest';
import { Marketplace } from './marketplace.js';

const HEARTBEAT_S = 30;
const RATE = 36_000_000;
const PER_SECOND = RATE / 3_600;

let marketplace: Marketplace;
beforeEach(() => {
  marketplace = new Marketplace(HEARTBEAT_S);
  marketplace.credit(1_000_000_000);
});
afterEach(() => marketplace.close());

const deploy = () => marketplace.deploy(RATE, 0);
const newest = () => marketplace.alive.at(-1) ?? '';

/** For how many seconds an instance is charged once its host has told everything, which is what the reference has. */
function chargedS(id: string): number {
  expect(marketplace.differences()).toEqual([]);
  return marketplace.spentBy(id) / PER_SECOND;
}

it('deploy, compute while SSH is kept silent, destroy: charged up to the destroy', () => {
  let id = '';
  marketplace.hesitate('comes up', deploy, 60, () => {
    id = newest();
    expect(marketplace.statusOf(id)).toBe('creating');
    marketplace.destroy(id);
  });
  expect(chargedS(id)).toBe(60);
});

it('an attempt that is made to fail after its process has come up: charged until its renter is told', () => {
  let id = '';
  marketplace.hesitate('fails', deploy, 45, () => (id = newest()));
  expect(marketplace.statusOf(id)).toBe('error');
  expect(chargedS(id)).toBe(45 + HEARTBEAT_S);
});

it('starts that are made to fail, again and again: each is charged', () => {
  deploy();
  marketplace.advance(2 * HEARTBEAT_S);
  const id = newest();
  marketplace.stop(id);
  marketplace.advance(2 * HEARTBEAT_S);
  const before = chargedS(id);
  for (let round = 0; round < 3; round++) {
    marketplace.hesitate('fails', () => marketplace.start(id), 5);
    expect(marketplace.statusOf(id)).toBe('stopped');
  }
  expect(chargedS(id) - before).toBe(3 * (5 + HEARTBEAT_S));
});

it('an image whose registry drips: nothing has had its GPU, and nothing is charged', () => {
  let id = '';
  marketplace.hesitate('waits for its image', deploy, 130, () => (id = newest()));
  expect(marketplace.statusOf(id)).toBe('error');
  expect(chargedS(id)).toBe(0);
});

it('a line that is filled: a stop that does not get through ends what is charged all the same, and nothing else does', () => {
  deploy();
  marketplace.advance(2 * HEARTBEAT_S);
  const id = newest();
  marketplace.silence(100);
  expect(marketplace.statusOf(id)).toBe('running');
  const before = chargedS(id);
  marketplace.silence(80, () => marketplace.stop(id));
  marketplace.advance(2 * HEARTBEAT_S);
  expect(marketplace.statusOf(id)).toBe('stopped');
  // All of the time in which nothing was heard, and none after the stop.
  expect(before).toBeGreaterThanOrEqual(100);
  expect(chargedS(id)).toBe(before);
});

it('a workload that comes up late is charged from its start, not from when that was told', () => {
  let id = '';
  marketplace.hesitate('comes up', deploy, 9, () => (id = newest()));
  marketplace.stop(id);
  expect(chargedS(id)).toBe(9 + 2 * HEARTBEAT_S);
});

it('a host that backdates a run is believed no further back than to when its command was first sent', () => {
  let id = '';
  marketplace.workloads.exaggerationMs = 10 * 3_600_000;
  const late = () => {
    deploy();
    marketplace.pause(20);
  };
  marketplace.hesitate('fails', late, 15, () => (id = newest()));
  marketplace.differences();
  expect(marketplace.spentBy(id) / PER_SECOND).toBe(20 + 15 + HEARTBEAT_S);
});

it('a host that tells of progress for a day, and then of a run as long, is paid for ten minutes before the last progress', () => {
  let id = '';
  marketplace.hesitate('fails', deploy, 60, () => {
    id = newest();
    for (let told = 0; told < 20 * 3; told++) {
      marketplace.tellOfProgress(id);
      marketplace.pause(20 * 60);
    }
  });
  expect(marketplace.statusOf(id)).toBe('error');
  expect(chargedS(id)).toBe(10 * 60 + 20 * 60 + HEARTBEAT_S);
});

it('a start that makes progress, and comes up late, is charged for ten minutes before its last progress', () => {
  deploy();
  marketplace.advance(2 * HEARTBEAT_S);
  const id = newest();
  marketplace.stop(id);
  marketplace.advance(2 * HEARTBEAT_S);
  const before = chargedS(id);
  const late = () => {
    marketplace.pause(15 * 60);
    marketplace.tellOfProgress(id);
  };
  marketplace.hesitate('comes up', () => marketplace.start(id), 60, late);
  marketplace.destroy(id);
  expect(chargedS(id) - before).toBe(10 * 60 + 2 * HEARTBEAT_S);
});

it('a run that is told of again and again is charged once, also over the end of the instance', () => {
  let id = '';
  marketplace.hesitate('fails', deploy, 30, () => (id = newest()));
  const once = chargedS(id);
  marketplace.destroy(id);
  marketplace.advance(4 * HEARTBEAT_S);
  expect(marketplace.statusOf(id)).toBe('destroyed');
  expect(chargedS(id)).toBe(once);
});

it('word of an end that comes again, and late, charges no time after the end', () => {
  deploy();
  marketplace.advance(2 * HEARTBEAT_S);
  const id = newest();
  marketplace.exitUnheard(id, 90);
  expect(marketplace.statusOf(id)).toBe('error');
  expect(chargedS(id)).toBe(HEARTBEAT_S);
});

it('a clock that is set back while a start is under way makes no GPU time free', () => {
  deploy();
  marketplace.advance(2 * HEARTBEAT_S);
  const id = newest();
  marketplace.stop(id);
  marketplace.advance(4 * HEARTBEAT_S);
  marketplace.hesitate(
    'comes up',
    () => marketplace.start(id),
    5,
    () => marketplace.setClock(-60),
  );
  marketplace.advance(10 * HEARTBEAT_S);
  expect(marketplace.statusOf(id)).toBe('running');
  expect(chargedS(id)).toBeGreaterThan(10 * HEARTBEAT_S);
});

it('nor does one that is set back before an attempt fails', () => {
  deploy();
  marketplace.advance(2 * HEARTBEAT_S);
  const id = newest();
  marketplace.stop(id);
  marketplace.advance(4 * HEARTBEAT_S);
  const before = chargedS(id);
  marketplace.hesitate(
    'fails',
    () => marketplace.start(id),
    5,
    () => marketplace.setClock(-60),
  );
  expect(marketplace.statusOf(id)).toBe('stopped');
  expect(chargedS(id) - before).toBe(5 + HEARTBEAT_S);
});
