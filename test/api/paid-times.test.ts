import { afterAll, beforeAll, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import { paidMs } from '../../control-plane/domain/money/paid-time.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import { TestControlPlane, statusIs } from '../harness/control-plane.js';
import { GPU_MICRO, HOUR_MS, makePoor } from '../harness/poor.js';

let test: TestControlPlane;
let templateId: string;
beforeAll(async () => {
  test = await TestControlPlane.start();
  templateId = await test.template();
});
afterAll(() => test.stop());

it('a balance lasts as long as it pays for all that burns', () => {
  expect(paidMs(30, 10)).toBe(3 * HOUR_MS);
  expect(paidMs(0, 10)).toBe(0);
  expect(paidMs(-5, 0)).toBe(0);
  expect(paidMs(1, 0)).toBe(30 * 24 * HOUR_MS);
  expect(paidMs(Number.MAX_SAFE_INTEGER, 1)).toBe(30 * 24 * HOUR_MS);
});

it('a host is told every minute for how long its instances are paid for', async () => {
  const poor = await makePoor(test, templateId, 2);
  const { agent, renter, ids } = poor;
  const heard = async () => {
    const before = agent.paidTimes.length;
    const parties = [() => agent.roundTrip()];
    return advanceUntil('the next word', { clock: test, stepMs: MINUTE_MS, parties }, () =>
      agent.paidTimes.length > before ? agent.paidTimes.at(-1) : undefined,
    );
  };
  const first = await heard();
  expect(first.map(({ instanceId }) => instanceId).sort()).toEqual([...ids].sort());
  // The disk of what runs is not charged.
  const burn = 2 * GPU_MICRO;
  const balance = await poor.balance();
  for (const { paidMs: told } of first) {
    expect(told).toBeGreaterThanOrEqual(paidMs(balance, burn));
    expect(told).toBeLessThan(paidMs(balance, burn) + 10 * MINUTE_MS);
  }
  const [kept = '', stopped = ''] = ids;
  await renter.api.post(`/v1/instances/${stopped}/stop`);
  await statusIs(renter.api, stopped, 'stopped');
  const second = await heard();
  expect(second.map(({ instanceId }) => instanceId)).toEqual([kept]);
  expect(second[0]?.paidMs).toBeGreaterThan(first[0]?.paidMs ?? 0);
});

it('an agent that heeds no paid times is told none', async () => {
  const { agent } = await makePoor(test, templateId);
  await agent.claim({ heedsPaidTimes: false });
  const before = agent.paidTimes.length;
  test.advance(2 * MINUTE_MS);
  agent.beat();
  const other = await makePoor(test, templateId);
  // It has heard what came after that beat.
  other.agent.beat();
  await eventually('the word to the other', () => other.agent.paidTimes.length > 0);
  expect(agent.paidTimes.length).toBe(before);
});
