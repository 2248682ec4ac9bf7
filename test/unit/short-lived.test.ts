import { beforeEach, describe, expect, it } from 'vitest';
import {
  MOST_OF_A_NETWORK,
  MOST_SHORT_LIVED,
  ShortLived,
} from '../../control-plane/services/identity/companies/short-lived.js';
import { ManualClock } from '../harness/manual-clock.js';

let clock: ManualClock;
let values: ShortLived<{ network: string; browser: string; name: string }>;

beforeEach(() => {
  clock = new ManualClock();
  values = new ShortLived(clock, 1_000);
});

const put = (key: string, network = 'n', browser = 'b') => values.put(key, { network, browser, name: key });

describe('a value that is kept for a time', () => {
  it('is taken once, by its browser', () => {
    put('k');
    expect(values.take('k', 'other')).toBeUndefined();
    expect(values.take('k', undefined)).toBeUndefined();
    expect(values.get('k', 'b')?.name).toBe('k');
    expect(values.take('k', 'b')?.name).toBe('k');
    expect(values.take('k', 'b')).toBeUndefined();
    expect(values.size).toBe(0);
  });

  it('ends, and is forgotten when the next one comes', () => {
    put('k');
    clock.advance(999);
    expect(values.get('k', 'b')).toBeDefined();
    clock.advance(1);
    expect(values.get('k', 'b')).toBeUndefined();
    put('l');
    expect(values.size).toBe(1);
  });

  it('makes room for the newest of its network', () => {
    for (let count = 0; count <= MOST_OF_A_NETWORK; count++) put(`${count}`);
    put('other', 'another network');
    expect(values.size).toBe(MOST_OF_A_NETWORK + 1);
    expect(values.get('0', 'b')).toBeUndefined();
    expect(values.get('1', 'b')).toBeDefined();
  });

  it('makes room for the newest of all', () => {
    for (let count = 0; count <= MOST_SHORT_LIVED; count++) put(`${count}`, `network ${count}`);
    expect(values.size).toBe(MOST_SHORT_LIVED);
    expect(values.get('0', 'b')).toBeUndefined();
    expect(values.get(`${MOST_SHORT_LIVED}`, 'b')).toBeDefined();
  });
});
