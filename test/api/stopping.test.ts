import { connect } from 'node:net';
import { expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';

it('a control plane that stops answers what is under way, and tells the rest to come back', async () => {
  const test = await TestControlPlane.start();
  const agent = await test.host();
  const renter = await test.renter();
  const body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  await renter.api.post(`/v1/instances/${id}/stop`);
  await statusIs(renter.api, id, 'stopped');
  agent.automatic = false;

  const { host, hostname, port } = new URL(test.api.baseUrl);
  const socket = connect({ host: hostname, port: Number(port) });
  let answers = '';
  socket.on('data', (data) => (answers += data.toString()));
  const authorization = `Authorization: Bearer ${renter.api.token ?? ''}`;
  socket.write(
    `POST /v1/instances/${id}/start HTTP/1.1\r\nHost: ${host}\r\n${authorization}\r\nContent-Length: 0\r\n\r\n`,
  );
  const start = await eventually('the start', () => agent.held[0]);
  const stopped = test.core.stop();
  socket.write(`GET /v1/offers HTTP/1.1\r\nHost: ${host}\r\n${authorization}\r\n\r\n`);
  agent.accept(start);
  await stopped;
  await eventually('both answers', () => answers.includes('UNAVAILABLE'));
  expect(answers).toMatch(/^HTTP\/1\.1 202 /);
  expect(answers).toMatch(/HTTP\/1\.1 503 [\s\S]*"code":"UNAVAILABLE"/);
  socket.destroy();
  test.cleanUp();
});

it('who connects and says nothing holds up no stop', async () => {
  const test = await TestControlPlane.start();
  const silent = [new URL(test.url).host, test.grpcAddress].map((address) => {
    const [host = '', port] = address.split(':');
    return connect({ host, port: Number(port) });
  });
  await Promise.all(silent.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
  let isStopped = false;
  const stopping = test.core.stop().then(() => (isStopped = true));
  await advanceUntil('the stop', { clock: test.clock, stepMs: 15_000 }, () => isStopped);
  await stopping;
  for (const socket of silent) socket.destroy();
  test.cleanUp();
});
