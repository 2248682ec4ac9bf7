import { pino } from 'pino';
import { beforeEach, expect, it } from 'vitest';
import { Failure, troubleOf } from '../../agent/domain/failure.js';
import { PacedLog } from '../../shared/paced-log.js';
import { ManualClock } from '../harness/manual-clock.js';

let lines: { level: number; msg: string; instanceId?: string }[];
let clock: ManualClock;
let paced: PacedLog;

beforeEach(() => {
  lines = [];
  clock = new ManualClock();
  const write = (line: string) => void lines.push(JSON.parse(line) as (typeof lines)[number]);
  paced = new PacedLog(clock, pino({ level: 'trace' }, { write }));
});

const texts = () => lines.map(({ msg }) => msg);

it('writes a trouble at once, and then once a minute with how often it came', () => {
  for (let second = 0; second < 125; second++) {
    paced.write('warn', `Docker does not answer, try ${second}`, { instanceId: 'i' });
    clock.advance(1_000);
  }
  expect(texts()).toEqual([
    'Docker does not answer, try 0',
    'Docker does not answer, try 60 (and 59 times more since that was said last)',
    'Docker does not answer, try 120 (and 59 times more since that was said last)',
  ]);
  expect(lines[0]).toMatchObject({ level: 40, instanceId: 'i' });
});

it('keeps no other trouble back, and takes what is said of one to be one', () => {
  paced.write('warn', 'the stop of a', {}, 'Docker');
  paced.write('error', 'the comparison', {}, 'Docker');
  paced.write('info', 'the link');
  expect(texts()).toEqual(['the stop of a', 'the link']);
});

it('says at once what comes again after a quiet minute', () => {
  paced.write('warn', 'x');
  clock.advance(60_000);
  paced.write('warn', 'x');
  expect(texts()).toEqual(['x', 'x']);
});

it('remembers no more than a bounded number of troubles, the latest', () => {
  const letters = (index: number) => String.fromCharCode(97 + (index % 26), 97 + Math.floor(index / 26));
  for (let index = 0; index < 300; index++) paced.write('warn', letters(index));
  expect(lines).toHaveLength(300);
  paced.write('warn', letters(299));
  expect(lines).toHaveLength(300);
  paced.write('warn', letters(0));
  expect(lines).toHaveLength(301);
});

it('a Docker that is away is one trouble, whatever waits for it', () => {
  for (const code of ['DOCKER_UNREACHABLE', 'DOCKER_TIMEOUT'] as const)
    expect(troubleOf(new Failure(code, 'x'), 'i')).toBe('Docker');
  expect(troubleOf(new Failure('CONTAINER_FAILED', 'x'), 'i')).toBe('i');
  expect(troubleOf(new Error('x'), 'i')).toBe('i');
});
