import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane, statusIs } from '../harness/control-plane.js';
import { GPU_MICRO, makePoor, type Poor } from '../harness/poor.js';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const GPU_MINUTE_MICRO = GPU_MICRO / 60;

let test: TestControlPlane;
let templateId: string;
beforeAll(async () => {
  test = await TestControlPlane.start();
  templateId = await test.template();
});
afterAll(() => test.stop());

/** The host connects again; its Hello leaves the end of a workload that is down to the report that is still to come. */
async function comeBack({ agent }: Poor, id: string): Promise<void> {
  const { sequence = 0, gpuUuids = [] } = agent.workloads.get(id) ?? {};
  const observation = { state: 'WORKLOAD_STATE_STOPPED' };
  await agent.claim({ instances: [{ instanceId: id, sequence, gpuUuids, diskGb: 0, observation }] });
}

/** A host with a free GPU that answers only where the test says so. */
async function makeSilentPoor(): Promise<Poor> {
  const poor = await makePoor(test, templateId);
  await poor.renter.api.post(`/v1/instances/${poor.id}/stop`);
  await statusIs(poor.renter.api, poor.id, 'stopped');
  await poor.renter.api.request('DELETE', `/v1/instances/${poor.id}`);
  await statusIs(poor.renter.api, poor.id, 'destroyed');
  poor.agent.automatic = false;
  return poor;
}

/** A workload comes up, and its host is out of reach before it can say so. Answers the instance. */
async function deployUnheard({ agent, renter, offerId }: Poor): Promise<string> {
  const body = { offer_id: offerId, template_id: templateId, disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  const command = await eventually('the command', () => agent.held.find(({ instanceId }) => instanceId === id));
  agent.lose(command);
  agent.disconnect();
  return id;
}

describe('A run of which the host speaks late', () => {
  it('is charged once, when the answer that it is up comes together with word of its end', async () => {
    const poor = await makeSilentPoor();
    const { agent, renter } = poor;
    const id = await deployUnheard(poor);
    test.advance(2 * MINUTE_MS);
    agent.end(id);
    test.advance(10 * SECOND_MS);
    await comeBack(poor, id);
    await statusIs(renter.api, id, 'running');
    test.advance(MINUTE_MS);
    expect((await poor.read(id)).spend_micro).toBe(2 * GPU_MINUTE_MICRO);
    agent.report(id);
    await statusIs(renter.api, id, 'error');
    test.advance(0);
    expect((await poor.read(id)).spend_micro).toBe(2 * GPU_MINUTE_MICRO);
  });

  it('is charged once, when it began and ended unheard before and after a stop that timed out', async () => {
    const poor = await makePoor(test, templateId);
    const { agent, id, renter } = poor;
    agent.automatic = false;
    await poor.pass(10 * MINUTE_MS);
    agent.disconnect();
    test.advance(5 * MINUTE_MS);
    await renter.api.post(`/v1/instances/${id}/stop`);
    test.advance(10 * MINUTE_MS);
    agent.reboot(id);
    test.advance(14 * MINUTE_MS);
    agent.end(id);
    test.advance(6 * MINUTE_MS);
    expect(await poor.read()).toMatchObject({ status: 'running', error_code: 'stop_timed_out' });
    test.advance(30 * MINUTE_MS);
    await comeBack(poor, id);
    agent.done(await eventually('the stop', () => agent.held.find(({ desired }) => desired === 'stopped')));
    await statusIs(renter.api, id, 'stopped');
    test.advance(0);
    expect((await poor.read()).spend_micro).toBe((10 + 14) * GPU_MINUTE_MICRO);
  });
});
