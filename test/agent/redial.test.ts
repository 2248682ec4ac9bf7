import { Metadata, status } from '@grpc/grpc-js';
import { EventEmitter } from 'node:events';
import { beforeEach, expect, it } from 'vitest';
import type { Wire } from '../../agent/link/dial.js';
import { Link, type Subscriber } from '../../agent/link/link.js';
import { ControlMessage, Heartbeat, Hello, Welcome } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { silentLogger } from '../../shared/logger.js';
import { REDIAL_AFTER } from '../../shared/protocol.js';
import { ManualClock } from '../harness/manual-clock.js';

const RANDOM = 0.7;
const SPREAD_MS = 10_000;
const LONGEST_MS = 60_000;

let clock: ManualClock;
let streams: (EventEmitter & Wire)[];
let canBeat: boolean;

beforeEach(async () => {
  clock = new ManualClock();
  streams = [];
  canBeat = true;
  const open = () => {
    const stream = Object.assign(new EventEmitter(), { write: () => true, cancel: () => undefined });
    streams.push(stream as unknown as EventEmitter & Wire);
    return stream as unknown as Wire;
  };
  const subscriber: Subscriber = {
    hello: () => Promise.resolve(Hello.create()),
    heartbeat: () => (canBeat ? Promise.resolve(Heartbeat.create()) : Promise.reject(new Error('no GPUs'))),
    connected: () => undefined,
    disconnected: () => undefined,
    receive: () => undefined,
  };
  new Link(open, subscriber, clock, () => RANDOM, silentLogger).start();
  await settled();
});

/** Lets the promises of the link go on. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

async function welcome(redialSpreadMs: number): Promise<void> {
  const value = Welcome.create({ redialSpreadMs, heartbeatMs: 10_000 });
  streams.at(-1)?.emit('data', ControlMessage.create({ message: { $case: 'welcome', value } }));
  await settled();
}

/** Returns how many ms after now the link dials. */
async function dialsAfter(): Promise<number> {
  const before = streams.length;
  for (let ms = 0; ms <= 2 * LONGEST_MS; ms++) {
    if (ms > 0) clock.advance(1);
    await settled();
    if (streams.length > before) return ms;
  }
  throw new Error('it does not dial');
}

const lose = (error: object = { details: 'Connection dropped' }) =>
  streams.at(-1)?.emit('error', Object.assign(new Error('lost'), error));

it('waits for its share of the time over which the control plane spreads its hosts, and then for its own back-off', async () => {
  await welcome(SPREAD_MS);
  lose();
  expect(await dialsAfter()).toBe(RANDOM * SPREAD_MS);
  lose();
  expect(await dialsAfter()).toBe(425);
  lose();
  expect(await dialsAfter()).toBe(850);
});

it('dials soon again when the control plane asks for no spread, as an older one does', async () => {
  await welcome(0);
  lose();
  expect(await dialsAfter()).toBe(425);
});

it('dials soon again when it has ended the stream itself', async () => {
  await welcome(SPREAD_MS);
  canBeat = false;
  clock.advance(10_000);
  await settled();
  expect(await dialsAfter()).toBe(425);
});

it('stays away for as long as a refusal asks, up to half as long again, at most a minute and a half', async () => {
  const refusal = (ms: string) => {
    const metadata = new Metadata();
    metadata.set(REDIAL_AFTER, ms);
    return { code: status.RESOURCE_EXHAUSTED, details: 'too many hosts', metadata };
  };
  lose(refusal('15000'));
  expect(await dialsAfter()).toBe(15_000 * (1 + RANDOM / 2));
  lose(refusal('1e12'));
  expect(await dialsAfter()).toBe(LONGEST_MS * (1 + RANDOM / 2));
  lose(refusal('no number'));
  expect(await dialsAfter()).toBe(425);
});
