import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';

let test: TestControlPlane;
let renters: Renter[];
const sockets: Socket[] = [];
beforeAll(async () => {
  test = await TestControlPlane.start();
  renters = await Promise.all(Array.from({ length: 5 }, () => test.renter()));
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});
afterAll(() => test.stop());

/** Begins to send a deploy that does not end; the answer is what was heard so far. */
function begin({ api }: Renter, length: string): { socket: Socket; heard: () => string } {
  const { hostname, port } = new URL(test.url);
  const socket = connect(Number(port), hostname);
  sockets.push(socket);
  let heard = '';
  socket.on('data', (data) => (heard += String(data)));
  socket.on('error', () => {});
  const head = ['POST /v1/instances HTTP/1.1', 'Host: x', `Authorization: Bearer ${api.token}`, length];
  socket.write([...head, 'Content-Type: application/json', '', ''].join('\r\n'));
  return { socket, heard: () => heard };
}

const LARGE = `Content-Length: ${5 * 1024 * 1024}`;
const refusedOf = (begun: { heard: () => string }[]) =>
  begun.filter(({ heard }) => /^HTTP\/1.1 503 [^]*Retry-After: \d/i.test(heard())).length;

it.each([LARGE, 'Transfer-Encoding: chunked'])('one caller may send four large bodies at once: %s', async (length) => {
  const [renter] = renters as [Renter];
  const begun = Array.from({ length: 5 }, () => begin(renter, length));
  await eventually('one to be refused', () => refusedOf(begun) === 1);
  // What is short goes on.
  expect((await renter.api.request('POST', '/v1/instances', {})).status).toBe(422);
  for (const { socket, heard } of begun) if (heard() === '') socket.destroy();
  await eventually('another to be taken', async () => {
    const another = begin(renter, `Content-Length: ${300 * 1024}`);
    another.socket.write(' '.repeat(300 * 1024));
    await eventually('an answer', () => another.heard() !== '');
    return another.heard().startsWith('HTTP/1.1 400');
  });
});

it('all callers together may send sixteen', async () => {
  const begun = renters.flatMap((renter) => Array.from({ length: 4 }, () => begin(renter, LARGE)));
  await eventually('four to be refused', () => refusedOf(begun) === 4);
});

it('half of them are of those that have never paid, and one account counts once for all its organizations', async () => {
  const [one, two, three] = await Promise.all([test.renter(0), test.renter(0), test.renter(0)]);
  const { id } = await one.api.post<{ id: string }>('/v1/orgs', { name: 'its second' });
  const four = [1, 2, 3, 4];
  const both = [...four.map(() => begin(one, LARGE)), ...four.map(() => begin(one, `${LARGE}\r\nX-Org-Id: ${id}`))];
  await eventually('four of one account to be refused', () => refusedOf(both) === 4);
  const others = four.map(() => begin(two, LARGE));
  const third = begin(three, LARGE);
  const gone = () => [...both, ...others].filter(({ socket, heard }) => socket.destroyed && heard() === '').length;
  await eventually('one of another account to give way', () => gone() + refusedOf(others) === 1);
  expect(third.heard()).toBe('');
});
