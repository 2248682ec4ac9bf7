import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InstanceBody } from '../../scripts/client.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';

let test: TestControlPlane;
let renter: Renter;

beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
});
afterAll(() => test.stop());

/** The values that a scrape shows, by name and labels. */
async function scrape(): Promise<Record<string, number>> {
  const answer = await fetch(`${test.url}/metrics`);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toMatch(/^text\/plain; version=/);
  const lines = (await answer.text()).split('\n').filter((line) => line.startsWith('gpurent_'));
  return Object.fromEntries(lines.map((line) => [line.replace(/ \S+$/, ''), Number(/\S+$/.exec(line)?.[0])]));
}

it('shows hosts, GPUs, instances, commands and what moves balances', async () => {
  const agent = await test.host({ gpus: 3 });
  agent.automatic = false;
  const body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  const command = await eventually('the command', () => agent.held[0]);
  test.advance(5_000);
  expect(await scrape()).toMatchObject({
    'gpurent_hosts{state="connected"}': 1,
    'gpurent_hosts{state="away"}': 0,
    'gpurent_gpus{state="sold"}': 1,
    'gpurent_gpus{state="free"}': 2,
    'gpurent_instances{status="creating"}': 1,
    'gpurent_commands_open{kind="provision"}': 1,
    'gpurent_commands_oldest_seconds{kind="provision"}': 5,
    'gpurent_ledger_entries_total{kind="credit"}': 1,
    gpurent_settlement_lag_seconds: 0,
  });
  agent.done(command);
  await statusIs(renter.api, id, 'running');
  const after = await scrape();
  expect(after).toMatchObject({
    'gpurent_instances{status="running"}': 1,
    'gpurent_commands_finished_total{kind="provision",outcome="done"}': 1,
  });
  expect(after['gpurent_commands_open{kind="provision"}']).toBeUndefined();
  expect(after['gpurent_http_request_seconds_count{method="POST",route="/v1/instances",status="201"}']).toBe(1);
});

it('counts a host that an operator has declared lost as that, and waits for nothing that it was to do', async () => {
  const agent = await test.host({ gpus: 1 });
  const body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  agent.disconnect();
  await eventually('its absence', async () => (await scrape())['gpurent_hosts{state="away"}'] === 1);
  await renter.api.delete(`/v1/instances/${id}`);
  expect((await scrape())['gpurent_commands_open{kind="destroy"}']).toBe(1);
  await test.operator.post(`/v1/operator/machines/${agent.hostId}/lost`);
  const after = await scrape();
  expect(after).toMatchObject({ 'gpurent_hosts{state="away"}': 0, 'gpurent_hosts{state="lost"}': 1 });
  expect(after['gpurent_commands_open{kind="destroy"}']).toBeUndefined();
});

it('says so while the database cannot be used', async () => {
  expect((await scrape())['gpurent_ready']).toBe(1);
  const { store } = test.core.platform;
  const transact = store.transact.bind(store);
  store.transact = () => {
    throw new Error('disk I/O error');
  };
  test.clock.advance(1_000);
  const shown = await scrape();
  store.transact = transact;
  expect(shown).toMatchObject({ gpurent_ready: 0 });
  expect(shown['gpurent_hosts{state="connected"}']).toBeUndefined();
});

it('is for this machine alone: through a proxy there is nothing', async () => {
  for (const header of ['X-Forwarded-For', 'Forwarded']) {
    const answer = await fetch(`${test.url}/metrics`, { headers: { [header]: '203.0.113.9' } });
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({ code: 'NOT_FOUND' });
  }
});
