import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../../scripts/client.js';
import { World, type Refused } from '../contract/world.js';
import { statusIs } from '../harness/control-plane.js';

const REASON = 'it mines coins for others';

let world: World;
beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.stop());

const read = (id: string) => world.admin.api.get<InstanceBody>(`/v1/instances/${id}`);
const stop = (id: string, body: object = { reason: REASON }) =>
  world.test.operator.request<Refused | null>('POST', `/v1/operator/instances/${id}/stop`, body);
const destroy = (id: string, body?: object) =>
  world.test.operator.request<Refused | null>('DELETE', `/v1/operator/instances/${id}`, body);
const events = async (id: string) =>
  (await world.admin.api.get<{ items: { kind: string; message: string }[] }>(`/v1/instances/${id}/events`)).items;
const lastAct = async () =>
  (await world.test.operator.get<{ items: object[] }>('/v1/operator/audit-log?limit=1')).items[0];

describe('an operator', () => {
  it('stops what runs: its renter reads why, keeps the disk, and may start it again', async () => {
    const { body } = await world.host();
    const { id } = await world.running(body);
    expect(await stop(id)).toMatchObject({ status: 202, body: null });
    await statusIs(world.admin.api, id, 'stopped');
    expect(await events(id)).toContainEqual(
      expect.objectContaining({ kind: 'stopped_by_operator', message: `an operator stops it: ${REASON}` }),
    );
    expect(await lastAct()).toMatchObject({
      action: 'instance.stop',
      subject: id,
      details: { reason: REASON, organization_id: world.admin.organizationId, status: 'running' },
    });
    await world.admin.api.post(`/v1/instances/${id}/start`);
    await statusIs(world.admin.api, id, 'running');
  });

  it('charges nothing of the stop, as if its renter had asked', async () => {
    const { agent, body } = await world.host();
    const twins = [await world.running(body), await world.running(body)];
    agent.automatic = false;
    await stop(twins[0]?.id ?? '');
    await world.admin.api.post(`/v1/instances/${twins[1]?.id}/stop`);
    world.test.advance(60_000);
    agent.beat();
    const [ours, theirs] = await Promise.all(twins.map(({ id }) => read(id)));
    expect(ours?.spend_micro).toBe(theirs?.spend_micro);
    expect(ours?.status).toBe('stopping');
  });

  it('stops nothing that does not run, and says how it stands', async () => {
    const ids = await world.inEveryStatus();
    for (const [status, id] of Object.entries(ids).filter(([status]) => status !== 'running')) {
      const before = world.test.dump();
      expect((await stop(id)).body, status).toMatchObject({
        code: 'INVALID_STATE',
        message: expect.stringContaining(status) as string,
      });
      expect(world.test.dump()).toEqual(before);
    }
  });

  it('destroys in whatever status, again where it is under way, and not what is destroyed', async () => {
    const ids = await world.inEveryStatus();
    for (const [status, id] of Object.entries(ids).filter(([status]) => status !== 'destroyed')) {
      expect((await destroy(id, { reason: REASON })).status, status).toBe(202);
      expect((await read(id)).status, status).toBe('destroying');
      expect((await events(id))[0], status).toMatchObject({
        kind: 'removed_by_operator',
        message: `an operator destroys it: ${REASON}`,
      });
      expect(await lastAct(), status).toMatchObject({
        action: 'instance.remove',
        subject: id,
        details: { reason: REASON, status },
      });
    }
    expect((await destroy(ids['destroyed'] ?? '', { reason: REASON })).body).toMatchObject({ code: 'INVALID_STATE' });
  });

  it('gives a reason of one line for what its renter can still use', async () => {
    const { body } = await world.host();
    const { id } = await world.running(body);
    const before = world.test.dump();
    const refused = [
      destroy(id),
      destroy(id, {}),
      ...['', 'two\nlines', 'x'.repeat(257)].flatMap((reason) => [destroy(id, { reason }), stop(id, { reason })]),
      stop(id, {}),
    ];
    for (const answer of await Promise.all(refused)) {
      expect(answer).toMatchObject({ status: 422, body: { code: 'VALIDATION_FAILED', details: [{ path: 'reason' }] } });
    }
    expect(world.test.dump()).toEqual(before);
  });
});
