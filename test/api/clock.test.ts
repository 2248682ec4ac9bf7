import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOUR_MS, MINUTE_MS } from '../../shared/time.js';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';

const LIMIT_MS = { creating: 30 * MINUTE_MS, stopping: 30 * MINUTE_MS };

interface Clock {
  held: boolean;
  stepped_ms: number | null;
  since: string | null;
}

let test: TestControlPlane;
let renter: Renter;
let templateId: string;

beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
  templateId = await test.template();
  test.advance(5 * MINUTE_MS);
});
afterAll(() => test.stop());

const clock = () => test.operator.get<Clock>('/v1/operator/clock');
const confirm = () => test.operator.post<Clock>('/v1/operator/clock/confirm');
const read = (id: string) => renter.api.get<InstanceBody>(`/v1/instances/${id}`);

/** An instance whose host says nothing more. */
async function waiting(status: 'creating' | 'stopping'): Promise<string> {
  const agent = await test.host({ gpus: 1, automatic: status === 'stopping' });
  const body = { offer_id: await test.offer(agent), template_id: templateId, disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  if (status === 'creating') return id;
  await statusIs(renter.api, id, 'running');
  agent.automatic = false;
  await renter.api.post(`/v1/instances/${id}/stop`);
  return id;
}

describe('a wall clock that is set', () => {
  it.each([
    ['an hour ahead', HOUR_MS],
    ['a day ahead', 24 * HOUR_MS],
    ['an hour back', -HOUR_MS],
    ['a day back', -24 * HOUR_MS],
  ])('%s ends nothing, until an operator has looked; then everything has its full time', async (_name, step) => {
    const waits = [await waiting('creating'), await waiting('stopping')] as const;
    const statuses = async () => [(await read(waits[0])).status, (await read(waits[1])).status];
    test.advance(1_000);
    test.clock.step(step);
    test.advance(LIMIT_MS.stopping);
    expect(await statuses()).toEqual(['creating', 'stopping']);
    expect(await clock()).toMatchObject({ held: true, stepped_ms: step, since: expect.any(String) as string });

    await test.restart();
    test.advance(5 * MINUTE_MS);
    expect(await statuses()).toEqual(['creating', 'stopping']);

    expect(await confirm()).toEqual({ held: false, stepped_ms: null, since: null });
    test.advance(LIMIT_MS.stopping - 1_000);
    expect(await statuses()).toEqual(['creating', 'stopping']);
    test.advance(1_000);
    expect(await statuses()).toEqual(['error', 'running']);
  });

  it('back while the control plane was away is noticed by what it had seen', async () => {
    await test.restart();
    test.advance(MINUTE_MS);
    test.clock.step(-HOUR_MS);
    await test.restart();
    test.advance(1_000);
    expect(await clock()).toMatchObject({ held: true });
    await confirm();
  });

  it('by less than a minute is believed, and so is one that was away for a day', async () => {
    test.clock.step(59_000);
    test.advance(1_000);
    test.clock.step(-59_000);
    test.advance(1_000);
    await test.restart();
    await test.core.stop();
    test.clock.advance(24 * HOUR_MS);
    await test.boot();
    test.advance(1_000);
    expect(await clock()).toEqual({ held: false, stepped_ms: null, since: null });
  });

  it('back by a day holds up no command that is to be sent again', async () => {
    const agent = await test.host({ automatic: false });
    const body = { offer_id: await test.offer(agent), template_id: templateId, disk_gb: 10 };
    await renter.api.post<InstanceBody>('/v1/instances', body);
    await eventually('the command', () => agent.received.length === 1);
    test.clock.step(-24 * HOUR_MS);
    test.advance(1_000);
    await eventually('the command again', () => agent.received.length === 2);
    await confirm();
  });

  describe('that is wrong when the control plane starts', () => {
    const OFF_MS = 2 * HOUR_MS;

    /** Starts anew; `aheadMs`: by how much the clock of each host is ahead of the control plane's. */
    async function startAmong(aheadMs: number[]): Promise<void> {
      await test.restart();
      for (const _ of aheadMs) await test.host();
      test.clock.advance(2 * MINUTE_MS - 10_000);
      for (const [index, ms] of aheadMs.entries()) {
        const agent = test.agents.at(index - aheadMs.length);
        agent?.beat({ atMs: test.clock.now() + ms });
        await agent?.roundTrip();
      }
      test.advance(9_000);
      expect(await clock()).toMatchObject({ held: false });
      test.advance(2_000);
    }

    it.each([
      ['the only host lies', [OFF_MS], null],
      ['the first of three hosts lies', [OFF_MS, 0, 0], null],
      ['half of the hosts lie', [OFF_MS, OFF_MS, 0, 0], null],
      ['hosts are wrong each in its own way', [OFF_MS, -OFF_MS, 0], null],
      ['most hosts are off by less than a minute', [50_000, 50_000, 0], null],
      ['most hosts are ahead of it', [OFF_MS, 0, OFF_MS], -OFF_MS],
      ['most hosts are behind it', [-OFF_MS, -OFF_MS, 0], OFF_MS],
    ] as [string, number[], number | null][])('is judged by most hosts: %s', async (_, aheadMs, expected) => {
      await startAmong(aheadMs);
      expect(await clock()).toMatchObject({ held: expected !== null, stepped_ms: expected });
      if (expected === null) return;
      expect(test.logged(50).at(-1)).toContain(`7200 seconds ${expected > 0 ? 'ahead' : 'behind'}; time-outs`);
      expect(await (await fetch(`${test.url}/metrics`)).text()).toContain('\ngpurent_clock_untrusted 1\n');
      await confirm();
      test.advance(MINUTE_MS);
      expect(await clock()).toMatchObject({ held: false });
    });
  });

  it('is confirmed by operators, who are named, and confirming what is right changes nothing', async () => {
    const before = test.dump();
    await confirm();
    expect(test.dump()).toEqual(before);
    const { items } = await test.operator.get<{ items: { action: string }[] }>('/v1/operator/audit-log');
    expect(items[0]).toMatchObject({ action: 'clock.confirm', actor_email: 'operator@example.com' });
  });
});
