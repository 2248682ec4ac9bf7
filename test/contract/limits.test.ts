import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { statusIs } from '../harness/control-plane.js';
import { DAY_MS, HOUR_MS, makePoor } from '../harness/poor.js';
import { World, type DeployBody } from './world.js';

let world: World;
let body: DeployBody;
beforeAll(async () => {
  world = await World.make();
  ({ body } = await world.host({ gpus: 16, diskGb: 30_000 }));
});
afterAll(() => world.stop());

/** What is the last to be accepted, and the first to be refused. The limit on instances stands with the deploy
 * refusals, the time-out of a stop with the states. */
describe('Limits', () => {
  const edge = async (accepted: object[], refused: object[]) => {
    for (const fields of accepted)
      expect(await world.deploys({ ...body, ...fields }), JSON.stringify(fields)).toBe(201);
    for (const fields of refused) {
      const answer = await world.refused(world.admin.api, 'POST', '/v1/instances', { ...body, ...fields });
      expect(answer, JSON.stringify(fields)).toMatchObject({ status: 422, code: 'VALIDATION_FAILED' });
    }
  };
  const override = (key: number, value: number) => ({
    env_overrides: [{ key: 'k'.repeat(key), value: 'v'.repeat(value), secret: false }],
  });

  it('disk_gb: 10 to 20000', () => edge([{ disk_gb: 10 }, { disk_gb: 20_000 }], [{ disk_gb: 9 }, { disk_gb: 20_001 }]));
  it('label: up to 64 characters, which are not bytes', () =>
    edge([{ label: 'x'.repeat(64) }, { label: '😀'.repeat(64) }, { label: '' }], [{ label: 'x'.repeat(65) }]));
  it('env override key: up to 256 characters', () => edge([override(256, 1)], [override(257, 1), override(0, 1)]));
  it('env override value: up to 4,096 characters', () => edge([override(1, 4_096)], [override(1, 4_097)]));
  it('env_overrides: at most 100 entries', async () => {
    const entries = (count: number) =>
      Array.from({ length: count }, (_, index) => ({ key: `K${index}`, value: 'v', secret: false }));
    await edge([{ env_overrides: entries(100) }], [{ env_overrides: entries(101) }]);
  });
  it('API key name: 1 to 64 characters', async () => {
    for (const name of ['x', 'x'.repeat(64)]) {
      expect((await world.admin.api.request('POST', '/v1/api-keys', { name })).status).toBe(201);
    }
    for (const name of ['', 'x'.repeat(65), 1, null, undefined]) {
      const answer = await world.refused(world.admin.api, 'POST', '/v1/api-keys', { name });
      expect(answer).toMatchObject({ status: 422, code: 'VALIDATION_FAILED', details: [{ path: 'name' }] });
    }
    const kind = await world.refused(world.admin.api, 'POST', '/v1/api-keys', { name: 'x', kind: 'root' });
    expect(kind).toMatchObject({ status: 422, details: [{ path: 'kind' }] });
  });
  it('logs tail: 1 to 1000', async () => {
    const { id } = await world.running(body);
    const ask = (tail: number) => world.admin.api.request('GET', `/v1/instances/${id}/logs?tail=${tail}`);
    for (const [tail, status] of [
      [0, 422],
      [1, 200],
      [1_000, 200],
      [1_001, 422],
    ] as const) {
      expect((await ask(tail)).status).toBe(status);
    }
  });
  it('auto-stop: balance reaches zero; auto-destruction: 24 hours at or below zero and at or below -$5', async () => {
    // The hosts of the others do not speak while its days pass.
    const own = await World.make();
    const poor = await makePoor(own.test, own.templateId);
    await poor.pass(2 * HOUR_MS);
    await statusIs(poor.renter.api, poor.id, 'stopped');
    expect(await poor.balance()).toBe(0);
    await poor.pass(DAY_MS - 1);
    expect((await poor.read()).status).toBe('stopped');
    await poor.pass(1);
    await statusIs(poor.renter.api, poor.id, 'destroyed');
    await own.stop();
  });
});
