import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import { TestControlPlane, statusIs } from '../harness/control-plane.js';
import { DAY_MS, DISK_MICRO, HOUR_MS, makePoor } from '../harness/poor.js';

let test: TestControlPlane;
let templateId: string;
beforeAll(async () => {
  test = await TestControlPlane.start();
  templateId = await test.template();
});
afterAll(() => test.stop());

describe('An automatic destruction', () => {
  const indebted = async () => {
    const poor = await makePoor(test, templateId);
    await poor.pass(2 * HOUR_MS);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    await poor.pass(HOUR_MS);
    expect(await poor.balance()).toBe(-DISK_MICRO);
    return poor;
  };

  it('waits for 24 hours anew when the balance was above zero in between', async () => {
    const poor = await indebted();
    await poor.pass(22 * HOUR_MS);
    await poor.credit(24 * DISK_MICRO);
    await poor.pass(HOUR_MS);
    expect(await poor.balance()).toBe(0);
    await poor.pass(DAY_MS - 1);
    expect((await poor.read()).status).toBe('stopped');
    await poor.pass(1);
    await statusIs(poor.renter.api, poor.id, 'destroyed');
    expect(await poor.eventKinds()).toContain('unpaid');
  });

  it('does not come for less than $5', async () => {
    const poor = await indebted();
    await poor.credit(DISK_MICRO - 1_000_000);
    const [agent] = [poor.agent];
    agent.disconnect();
    await test.operator.post(`/v1/operator/machines/${agent.hostId}/lost`);
    await poor.pass(3 * DAY_MS);
    expect(await poor.balance()).toBe(-1_000_000);
    expect((await poor.read()).status).toBe('stopped');
  });

  it('waits for 24 hours anew when the control plane was away for more than ten minutes', async () => {
    const poor = await indebted();
    await poor.away(20 * HOUR_MS);
    await poor.pass(20 * HOUR_MS);
    expect((await poor.read()).status).toBe('stopped');
    await poor.away(9 * MINUTE_MS);
    await poor.pass(4 * HOUR_MS);
    await statusIs(poor.renter.api, poor.id, 'destroyed');
  });

  it('waits while the clock is in doubt, and for 24 hours anew once it is confirmed', async () => {
    const poor = await indebted();
    test.clock.step(2 * DAY_MS);
    await poor.pass(HOUR_MS);
    expect(await poor.read()).toMatchObject({ status: 'stopped' });
    expect(await poor.balance()).toBe(-2 * DISK_MICRO);
    await poor.pass(DAY_MS);
    expect((await poor.read()).status).toBe('stopped');
    await test.signInOperator();
    await test.operator.post('/v1/operator/clock/confirm');
    await poor.pass(DAY_MS - 1);
    expect((await poor.read()).status).toBe('stopped');
    await poor.pass(1);
    await statusIs(poor.renter.api, poor.id, 'destroyed');
  });
});
