import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import type { FakeAgent } from '../harness/fake-agent.js';

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

it('shows the age of each copy that gpurent-copies has made', async () => {
  expect(Object.keys(await scrape()).filter((name) => name.startsWith('gpurent_copy'))).toEqual([]);
  const anHourAgo = Math.floor(test.clock.now() / 1_000) - 3_600;
  writeFileSync(`${test.databaseFile}.copies`, `${anHourAgo}\t/copies\nnever\tsftp://copies.example/x\n`);
  const shown = await scrape();
  expect(shown['gpurent_copy_age_seconds{target="/copies"}']).toBeCloseTo(3_600, -1);
  // Number() does not read Prometheus' +Inf.
  expect(shown).toHaveProperty(['gpurent_copy_age_seconds{target="sftp://copies.example/x"}'], NaN);
});

it('says so while the database cannot be used', async () => {
  expect((await scrape())['gpurent_ready']).toBe(1);
  const free = (await scrape())['gpurent_disk_free_ratio'] ?? NaN;
  expect(free > 0 && free < 1).toBe(true);
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

/** A request to this machine as it stands, for what no client of ours sends. */
function askRaw(...lines: string[]): Promise<string> {
  const { port } = new URL(test.url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), '127.0.0.1', () => socket.end(`${lines.join('\r\n')}\r\n\r\n`));
    let answer = '';
    socket.on('data', (chunk) => (answer += String(chunk))).on('end', () => resolve(answer));
    socket.on('error', reject);
  });
}
const statusOf = (answer: string) => Number(answer.split(' ')[1]);

describe('is for this machine alone: through a proxy there is nothing', () => {
  it.each([
    'X-Forwarded-For',
    'Forwarded',
    'Via',
    'X-Real-IP',
    'X-Forwarded-Proto',
    'X-Forwarded-Host',
    'X-Original-Forwarded-For',
    'X-Original-URL',
    'X-Client-IP',
    'X-Cluster-Client-IP',
    'Client-IP',
    'True-Client-IP',
    'CF-Connecting-IP',
    'CF-Ray',
    'CDN-Loop',
    'Fastly-Client-IP',
    'X-Envoy-External-Address',
    'X-Amzn-Trace-Id',
    'X-Request-Start',
    'X-ProxyUser-Ip',
  ])('%s', async (header) => {
    const answer = await fetch(`${test.url}/metrics`, { headers: { [header]: '203.0.113.9' } });
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({ code: 'NOT_FOUND' });
  });

  it('also where it adds no header: it speaks HTTP/1.0, or keeps the name that was asked for', async () => {
    const last = 'Connection: close';
    expect(statusOf(await askRaw('GET /metrics HTTP/1.1', 'Host: 127.0.0.1:8080', last))).toBe(200);
    expect(statusOf(await askRaw('GET /metrics HTTP/1.1', 'Host: localhost', last))).toBe(200);
    expect(statusOf(await askRaw('GET /metrics HTTP/1.0', 'Host: 127.0.0.1:8080', last))).toBe(404);
    expect(statusOf(await askRaw('GET /metrics HTTP/1.1', 'Host: gpurent.example.com', last))).toBe(404);
    expect(statusOf(await askRaw('GET /metrics HTTP/1.1', 'Host: 127.0.0.1.example.com', last))).toBe(404);
  });

  it('and a Prometheus is no proxy', async () => {
    const headers = {
      'User-Agent': 'Prometheus/3.0',
      'X-Prometheus-Scrape-Timeout-Seconds': '10',
      Accept: 'text/plain',
    };
    expect((await fetch(`${test.url}/metrics`, { headers })).status).toBe(200);
  });
});

describe('commands that fail', () => {
  /** A deploy of a renter of its own, which the host fails with this code. */
  async function fails(agent: FakeAgent, body: object, code: string, who?: Renter): Promise<void> {
    const { api } = who ?? (await test.renter());
    const { id } = await api.post<InstanceBody>('/v1/instances', body);
    agent.fail(
      await eventually('the command', () => agent.held.find(({ instanceId }) => instanceId === id)),
      code,
      'no',
    );
    await statusIs(api, id, 'error');
  }

  it('begin at none of each, for Prometheus sees no increase in what it sees for the first time', async () => {
    const shown = await scrape();
    for (const kind of ['provision', 'start', 'stop', 'release', 'destroy', 'access']) {
      const failed = `gpurent_commands_finished_total{kind="${kind}",outcome="failed",code="NO_FREE_PORT"}`;
      expect(shown[failed]).toBe(0);
    }
  });

  it('are counted by why, in words that are known, and by the hosts on which those of several fail', async () => {
    const agent = await test.host({ gpus: 8, automatic: false });
    const body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
    const same = await test.renter();
    for (const who of [same, same, same]) await fails(agent, body, 'IMAGE_UNAVAILABLE', who);
    await fails(agent, body, 'said by a host');
    const failed = (code: string) =>
      `gpurent_commands_finished_total{kind="provision",outcome="failed",code="${code}"}`;
    expect(await scrape()).toMatchObject({
      [failed('IMAGE_UNAVAILABLE')]: 3,
      [failed('other')]: 1,
      // Two organizations.
      gpurent_hosts_failing: 0,
    });
    await fails(agent, body, 'IMAGE_UNAVAILABLE');
    expect(await scrape()).toMatchObject({ gpurent_hosts_failing: 1 });
    test.clock.advance(15 * 60_000);
    expect(await scrape()).toMatchObject({ gpurent_hosts_failing: 0 });
  });
});
