import { createSocket, type Socket } from 'node:dgram';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { askingNameServers, type ResolveName } from '../../control-plane/outbound/resolve-name.js';

/** The addresses of each name; `undefined`: the server does not answer at all. */
const KNOWN: Record<string, readonly string[] | undefined> = {
  'both.example': ['192.0.2.1', '2001:db8::1', '192.0.2.2'],
  'four.example': ['192.0.2.3'],
  'silent.example': undefined,
};

let server: Socket;
let resolve: ResolveName;
let asked: () => void;

beforeAll(async () => {
  server = createSocket('udp4');
  server.on('message', (question, { port, address }) => {
    asked();
    const answer = answerTo(question);
    if (answer) server.send(answer, port, address);
  });
  await new Promise<void>((done) => server.bind(0, '127.0.0.1', done));
  resolve = askingNameServers([`127.0.0.1:${server.address().port}`]);
});
afterAll(() => server.close());

const A = 1;
const NO_SUCH_NAME = 3;

/** Answers one question of DNS. */
function answerTo(question: Buffer): Buffer | undefined {
  const labels: string[] = [];
  let at = 12;
  for (let length = question[at] ?? 0; length > 0; length = question[at] ?? 0) {
    labels.push(question.subarray(at + 1, at + 1 + length).toString());
    at += length + 1;
  }
  const name = labels.join('.');
  const type = question.readUInt16BE(at + 1);
  if (name in KNOWN && KNOWN[name] === undefined) return undefined;
  const records = (KNOWN[name] ?? [])
    .filter((address) => address.includes(':') === (type !== A))
    .map((address) => recordOf(type, address));
  const head = Buffer.alloc(12);
  question.copy(head, 0, 0, 2);
  head.writeUInt16BE(0x8180 + (name in KNOWN ? 0 : NO_SUCH_NAME), 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(records.length, 6);
  return Buffer.concat([head, question.subarray(12, at + 5), ...records]);
}

function recordOf(type: number, address: string): Buffer {
  const bytes = type === A ? address.split('.').map(Number) : [0x20, 0x01, 0x0d, 0xb8, ...Array<number>(11).fill(0), 1];
  return Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, bytes.length, ...bytes]);
}

const never = new AbortController().signal;

it('a name has the addresses of both versions', async () => {
  asked = () => {};
  expect(await resolve('both.example', never)).toEqual(['192.0.2.1', '192.0.2.2', '2001:db8::1']);
  expect(await resolve('four.example', never)).toEqual(['192.0.2.3']);
  expect(await resolve('unknown.example', never)).toEqual([]);
  expect(await resolve('not a name..', never)).toEqual([]);
});

it('a question that nobody answers ends with the attempt', async () => {
  const controller = new AbortController();
  const isAsked = new Promise<void>((done) => (asked = done));
  const answer = resolve('silent.example', controller.signal);
  await isAsked;
  const abortedAt = performance.now();
  controller.abort();
  expect(await answer).toEqual([]);
  expect(performance.now() - abortedAt).toBeLessThan(4_000);
});
