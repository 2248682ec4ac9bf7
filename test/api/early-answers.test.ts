import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { MIB } from '../../shared/bytes.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';

let test: TestControlPlane;
let renter: Renter;
beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
});
afterAll(() => test.stop());

type Headers = Record<string, string | number>;
interface Heard {
  status: number;
  body: { code: string };
}

/**
 * A program that sends, does something else until it was answered, and sends on before it reads: it never sees an answer on a
 * connection that was closed meanwhile.
 */
const CLIENT = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { request } = require('node:http');
  const { options, isAnswered } = workerData;
  const sent = request({ ...options, agent: false });
  sent.on('error', (error) => parentPort.postMessage({ status: 0, body: { code: error.code } }));
  sent.on('response', async (answer) => {
    let text = '';
    for await (const part of answer) text += part;
    parentPort.postMessage({ status: answer.statusCode, body: JSON.parse(text) });
  });
  sent.on('socket', (socket) => socket.once('connect', () => {
    const piece = Buffer.alloc(16 * 1024, ' ');
    sent.write(piece);
    sent.write(piece);
    setImmediate(async () => {
      Atomics.wait(isAnswered, 0, 0);
      for (let count = 0; count < 5; count++) {
        sent.write(piece);
        // Until that is written, and not until something is read.
        await new Promise(process.nextTick);
      }
      sent.end();
    });
  }));
`;

async function send(path: string, headers: Headers): Promise<Heard> {
  const { hostname, port } = new URL(test.url);
  const isAnswered = new Int32Array(new SharedArrayBuffer(4));
  const before = test.logged(30).length;
  const options = { hostname, port, path, method: 'POST', headers };
  const worker = new Worker(CLIENT, { eval: true, workerData: { options, isAnswered } });
  const heard = once(worker, 'message') as Promise<[Heard]>;
  await eventually('the answer', () => test.logged(30).length > before);
  // Until what was closed is closed.
  for (let turn = 0; turn < 5; turn++) await setImmediate();
  Atomics.store(isAnswered, 0, 1);
  Atomics.notify(isAnswered, 0);
  const [answer] = await heard;
  await worker.terminate();
  return answer;
}

const json = { 'Content-Type': 'application/json' };
const mine = () => ({ ...json, Authorization: `Bearer ${renter.api.token}` });

const LARGE = 64 * MIB;

it.each<[string, Headers]>([
  ['declares its length', { 'Content-Length': LARGE }],
  ['wants the connection closed', { 'Content-Length': LARGE, Connection: 'close' }],
])('a client that %s hears why its body is not read', async (_, length) => {
  expect(await send('/v1/instances', { ...mine(), ...length })).toMatchObject({
    status: 413,
    body: { code: 'PAYLOAD_TOO_LARGE' },
  });
  expect(await send('/v1/instances', { ...json, ...length })).toMatchObject({
    status: 401,
    body: { code: 'TOKEN_INVALID' },
  });
  expect(await send('/v1/nothing', { ...json, ...length })).toMatchObject({ status: 413 });
});

it('a client that does not say how much it sends hears that it was too much, and may ask again', async () => {
  const { hostname, port } = new URL(test.url);
  const socket = connect(Number(port), hostname);
  const heard = text(socket);
  const head = ['POST /v1/orgs HTTP/1.1', 'Host: x', `Authorization: Bearer ${renter.api.token}`];
  socket.write([...head, 'Content-Type: application/json', 'Transfer-Encoding: chunked', '', ''].join('\r\n'));
  for (let count = 0; count < 16; count++) socket.write(`40000\r\n${' '.repeat(0x40000)}\r\n`);
  socket.write('0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(await heard).toMatch(/^HTTP\/1.1 413 [^]*HTTP\/1.1 200 /);
});

it('fetch hears it, too', async () => {
  const body = 'x'.repeat(32 * MIB);
  for (const headers of [mine(), json]) {
    const answer = await fetch(`${test.url}/v1/instances`, { method: 'POST', headers, body });
    expect(answer.status).toBe('Authorization' in headers ? 413 : 401);
    expect(await answer.json()).toHaveProperty('code');
  }
});

it('who never ends is cut off', async () => {
  const { hostname, port } = new URL(test.url);
  const socket = connect(Number(port), hostname);
  let heard = '';
  let isOver = false;
  socket.on('data', (data) => (heard += String(data)));
  socket.on('error', () => {});
  socket.on('close', () => (isOver = true));
  socket.write(
    `POST /v1/orgs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n{`,
  );
  await eventually('the answer', () => heard.includes('TOKEN_INVALID'));
  socket.write('more');
  const passing = { clock: test.clock, stepMs: 1_000, parties: [() => test.roundTrip()] };
  await advanceUntil('the server to listen no more', passing, () => isOver);
});
