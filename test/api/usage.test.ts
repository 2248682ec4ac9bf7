import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane, statusIs } from '../harness/control-plane.js';
import { DAY_MS, DISK_MICRO, GPU_MICRO, HOUR_MS, makePoor, type Poor } from '../harness/poor.js';

let test: TestControlPlane;
let templateId: string;
beforeAll(async () => {
  test = await TestControlPlane.start();
  templateId = await test.template();
});
afterAll(() => test.stop());

const poorOf = (instances?: number) => makePoor(test, templateId, instances);
const credit = ({ renter }: Poor, amount_micro: number) =>
  test.operator.post(`/v1/operator/organizations/${renter.organizationId}/credits`, { amount_micro, reason: 'test' });

describe('Usage that a heartbeat has told of and that is not written down yet', () => {
  it('is settled before a deploy or start is let through', async () => {
    const poor = await poorOf();
    await poor.pass(60_000);
    test.clock.advance(20_000);
    poor.agent.beat({ diskFreeGb: 77 });
    await eventually('the heartbeat', async () => {
      const { hostId } = poor.agent;
      return (
        (await test.operator.get<{ disk_available_gb: number }>(`/v1/operator/machines/${hostId}`))
          .disk_available_gb === 77
      );
    });
    const offer_id = await test.offer(await test.host(), 1, GPU_MICRO);
    const body = { offer_id, template_id: templateId, disk_gb: 10 };
    const left = 2 * GPU_MICRO - (GPU_MICRO * 80_000) / HOUR_MS;
    const refused = await poor.renter.api.request('POST', '/v1/instances', body);
    expect(refused).toMatchObject({ status: 402, body: { code: 'INSUFFICIENT_BALANCE', balance_micro: left } });
    // What is settled is not charged again when it is written down.
    await poor.agent.speak(poor.id);
    test.advance(MINUTE_MS);
    expect(await poor.balance()).toBe(left);
  });
});

describe('How long a balance lasts', () => {
  const lastsUntil = async ({ renter }: Poor) => {
    const { lasts_until } = await renter.api.get<{ lasts_until: string | null }>('/v1/orgs/current');
    return lasts_until === null ? null : Date.parse(lasts_until);
  };

  it('is told by what is really charged: the GPUs of what runs, the disks of what is stopped', async () => {
    const poor = await poorOf(2);
    const [, stopped = ''] = poor.ids;
    await poor.pass(HOUR_MS);
    expect(await lastsUntil(poor)).toBe(test.clock.now() + HOUR_MS);
    await poor.renter.api.post(`/v1/instances/${stopped}/stop`);
    await statusIs(poor.renter.api, stopped, 'stopped');
    const lasts = Math.ceil((2 * GPU_MICRO * HOUR_MS) / (GPU_MICRO + DISK_MICRO));
    expect(await lastsUntil(poor)).toBe(test.clock.now() + lasts);
    const until = (await lastsUntil(poor)) ?? 0;
    // It is the very millisecond in which what runs is stopped.
    await poor.pass(until - test.clock.now() - 1);
    expect((await poor.read()).status).toBe('running');
    await poor.pass(1);
    await statusIs(poor.renter.api, poor.id, 'stopped');
  });

  it('is now where nothing is left, and not known where nothing is charged, or a balance is not used up in sight', async () => {
    const poor = await poorOf();
    await poor.pass(2 * HOUR_MS);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    expect(await lastsUntil(poor)).toBe(test.clock.now());
    await credit(poor, 1_000_000_000_000);
    await credit(poor, 1_000_000_000_000);
    expect(await lastsUntil(poor)).toBeGreaterThan(test.clock.now() + 20 * 365 * DAY_MS);
    for (let more = 0; more < 10; more++) await credit(poor, 1_000_000_000_000);
    expect(await lastsUntil(poor)).toBeNull();
    await poor.renter.api.delete(`/v1/instances/${poor.id}`);
    await statusIs(poor.renter.api, poor.id, 'destroyed');
    expect(await lastsUntil(poor)).toBeNull();
  });
});
