import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import type { FakeAgent } from '../harness/fake-agent.js';

let test: TestControlPlane;
let renter: Renter;
let templateId: string;

beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
  templateId = await test.template();
});
afterAll(() => test.stop());

async function deployOn(agent: FakeAgent, fields: Record<string, unknown> = {}): Promise<InstanceBody> {
  const offer_id = await test.offer(agent);
  return renter.api.post<InstanceBody>('/v1/instances', { offer_id, template_id: templateId, disk_gb: 10, ...fields });
}

/** Nobody polls for a while; the host is there. */
async function isIdle(agent: FakeAgent): Promise<void> {
  test.clock.advance(31_000);
  agent.beat();
  await eventually('the host to be heard', async () => {
    const machine = await test.operator.get<{ connected: boolean }>(`/v1/operator/machines/${agent.hostId}`);
    return machine.connected;
  });
  test.advance(0);
}

describe('logs', () => {
  it('come from one subscription however often they are polled', async () => {
    const agent = await test.host();
    const { id } = await deployOn(agent);
    const read = async (tail = 200) =>
      (await renter.api.get<{ lines: string[] }>(`/v1/instances/${id}/logs?tail=${tail}`)).lines;
    await statusIs(renter.api, id, 'running');
    agent.print(id, 'one', 'two');
    await eventually('both lines', async () => (await read()).length === 2);
    agent.print(id, 'three');
    await eventually('the third line', async () => (await read()).at(-1) === 'three');
    expect(await read(2)).toEqual(['two', 'three']);
    expect(agent.subscriptions.size).toBe(1);
    await isIdle(agent);
    await eventually('the end of the subscription', () => agent.subscriptions.size === 0);
  });

  it('go on after their stream has ended, and stay readable while the host is away', async () => {
    const agent = await test.host();
    const { id } = await deployOn(agent);
    const read = async () => (await renter.api.get<{ lines: string[] }>(`/v1/instances/${id}/logs`)).lines;
    await statusIs(renter.api, id, 'running');
    agent.print(id, 'one');
    await eventually('the line', async () => (await read()).length === 1);
    const [subscriptionId] = agent.subscriptions.keys();
    agent.subscriptions.clear();
    agent.say({ logChunk: { subscriptionId, lines: [], ended: true } });
    agent.print(id, 'two');
    test.clock.advance(3_000);
    await eventually('what came after', async () => (await read()).includes('two'));
    agent.disconnect();
    await eventually('the control plane to notice', async () => {
      const machine = await test.operator.get<{ connected: boolean }>(`/v1/operator/machines/${agent.hostId}`);
      return !machine.connected;
    });
    await renter.api.post(`/v1/instances/${id}/stop`);
    expect(await read()).toEqual(['one', 'two']);
  });

  it('go on after the last line when the host is back, and are kept for as long as it is away', async () => {
    const agent = await test.host();
    const { id } = await deployOn(agent);
    const read = async () => (await renter.api.get<{ lines: string[] }>(`/v1/instances/${id}/logs`)).lines;
    await statusIs(renter.api, id, 'running');
    const many = Array.from({ length: 1_000 }, (_, index) => `line ${index + 1}`);
    agent.print(id, ...many);
    const all = async () => (await renter.api.get<{ lines: string[] }>(`/v1/instances/${id}/logs?tail=1000`)).lines;
    await eventually('all lines', async () => (await all()).length === 1_000);
    agent.disconnect();
    agent.print(id, 'while it was away');
    test.advance(31_000);
    test.advance(3_600_000);
    expect(await all()).toEqual(many);
    await agent.connect();
    const resumed = [...many.slice(1), 'while it was away'];
    await eventually('the line that was missed', async () => (await read()).at(-1) === 'while it was away');
    expect(await all()).toEqual(resumed);
    expect(agent.subscriptions.size).toBe(1);
    await isIdle(agent);
    await eventually('the end of the subscription', () => agent.subscriptions.size === 0);
  });

  it('are empty until the workload has run, and refuse a tail out of range', async () => {
    const agent = await test.host({ automatic: false });
    const { id } = await deployOn(agent);
    expect(await renter.api.get(`/v1/instances/${id}/logs`)).toEqual({ lines: [] });
    for (const tail of ['0', '1001', 'many']) {
      const answer = await renter.api.request('GET', `/v1/instances/${id}/logs?tail=${tail}`);
      expect(answer).toMatchObject({ status: 422, body: { code: 'VALIDATION_FAILED' } });
    }
  });

  it('come once each to who goes on with `after`, whatever happens in between', async () => {
    const agent = await test.host();
    const { id } = await deployOn(agent);
    await statusIs(renter.api, id, 'running');
    const received: string[] = [];
    let after = '';
    const poll = async (tail = 100) => {
      const page = await renter.api.get<{ lines: string[]; next_after: string; lines_missed: boolean | null }>(
        `/v1/instances/${id}/logs?tail=${tail}&after=${after}`,
      );
      received.push(...page.lines);
      after = page.next_after;
      return page;
    };
    /** Polls until nothing has come for a while. */
    const catchUp = async (last: string) => {
      await eventually(last, async () => {
        await poll(7);
        return received.at(-1) === last;
      });
    };
    let printed = 0;
    const print = (count: number) => {
      for (let done = 0; done < count; done++) agent.print(id, `line ${++printed}`);
    };
    expect(await poll()).toMatchObject({ lines: [], lines_missed: false });
    print(20);
    await catchUp('line 20');
    // The subscription ends, as nobody polls, and another one begins with older lines.
    await isIdle(agent);
    await eventually('the end of the subscription', () => agent.subscriptions.size === 0);
    print(5);
    await catchUp('line 25');
    agent.disconnect();
    print(5);
    expect(await poll()).toMatchObject({ lines: [], next_after: after });
    await agent.connect();
    test.clock.advance(3_000);
    await catchUp('line 30');
    await test.restart();
    await agent.connect();
    print(5);
    await catchUp('line 35');
    await renter.api.post(`/v1/instances/${id}/stop`);
    await statusIs(renter.api, id, 'stopped');
    await renter.api.post(`/v1/instances/${id}/start`);
    await statusIs(renter.api, id, 'running');
    print(5);
    await catchUp('line 40');
    expect(received).toEqual(Array.from({ length: 40 }, (_, index) => `line ${index + 1}`));
    print(1_200);
    await eventually('the newest line', async () => {
      const { lines } = await renter.api.get<{ lines: string[] }>(`/v1/instances/${id}/logs?tail=1`);
      return lines[0] === `line ${printed}`;
    });
    expect(await poll(1)).toMatchObject({ lines: ['line 241'], lines_missed: true });
    expect(await poll(1)).toMatchObject({ lines: ['line 242'], lines_missed: false });
    await renter.api.delete(`/v1/instances/${id}`);
    await statusIs(renter.api, id, 'destroyed');
    const before = after;
    expect(await poll()).toEqual({ lines: [], next_after: before, lines_missed: null });
    const refused = await renter.api.request('GET', `/v1/instances/${id}/logs?after=x`);
    expect(refused).toMatchObject({ status: 422, body: { code: 'VALIDATION_FAILED', details: [{ path: 'after' }] } });
  });
});
