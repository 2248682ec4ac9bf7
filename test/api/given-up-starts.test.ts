import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { CommandOutcome, CommandResult } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import type { FakeAgent } from '../harness/fake-agent.js';
import type { WireCommand } from '../harness/wire.js';
import { recordResult } from '../../control-plane/services/reconciler/command-results.js';

const ANSWER_TIMEOUT_MS = 10_000;

let test: TestControlPlane;
let renter: Renter;
let templateId: string;

beforeAll(async () => {
  test = await TestControlPlane.start();
  templateId = await test.template();
});
afterAll(() => test.stop());
beforeEach(async () => {
  renter = await test.renter();
});

const read = (id: string) => renter.api.get<InstanceBody & { gpus_released: boolean }>(`/v1/instances/${id}`);
const start = (id: string) => renter.api.request<InstanceBody>('POST', `/v1/instances/${id}/start`);
const dispute = (method: string) =>
  test.operator.request(method, `/v1/operator/organizations/${renter.organizationId}/dispute`);
const stateOf = async (offerId: string) => (await renter.api.get<{ state: string }>(`/v1/offers/${offerId}`)).state;

/** The newest command that waits for an answer and was not seen before. */
function nextCommand(agent: FakeAgent, ...seen: WireCommand[]): Promise<WireCommand> {
  return eventually('a command', () => {
    agent.beat();
    test.core.workers.runAll();
    return agent.held.findLast(({ commandId }) => !seen.some((other) => other.commandId === commandId));
  });
}

/** A stopped instance on a host of its own with one GPU; the host answers nothing by itself from now on. */
async function stopped() {
  const agent = await test.host({ gpus: 1 });
  const offerId = await test.offer(agent);
  const body = { offer_id: offerId, template_id: templateId, disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  await renter.api.post(`/v1/instances/${id}/stop`);
  await statusIs(renter.api, id, 'stopped');
  agent.automatic = false;
  return { agent, id, offerId };
}

/** The same, and its GPU is back on the market. */
async function released() {
  const made = await stopped();
  await dispute('POST');
  made.agent.done(await nextCommand(made.agent));
  await eventually('the release', async () => (await read(made.id)).gpus_released);
  await dispute('DELETE');
  expect(await stateOf(made.offerId)).toBe('available');
  return made;
}

describe('a start of an instance whose GPUs were released', () => {
  it('that is refused leaves the undoing of an earlier one in force: the GPU is released again', async () => {
    const { agent, id, offerId } = await released();
    const first = start(id);
    const landed = await nextCommand(agent);
    test.clock.advance(ANSWER_TIMEOUT_MS);
    expect((await first).status).toBe(503);
    agent.lose(landed);
    const second = start(id);
    const later = await eventually('the second start', () =>
      agent.held.find(({ desired, sequence }) => desired === 'running' && sequence > landed.sequence),
    );
    agent.refuse(later, 'DOCKER_UNREACHABLE', 'Docker does not answer on this host');
    expect((await second).status).toBe(409);
    const undo = await eventually('the undoing', () => agent.held.find(({ sequence }) => sequence > later.sequence));
    expect(undo.stopped).toEqual({ releaseGpus: true });
    expect(await stateOf(offerId)).toBe('unavailable');
    agent.done(undo);
    await eventually('the GPU to be free', async () => (await stateOf(offerId)) === 'available');
  });

  it('that fails after all gives the GPU back to the market', async () => {
    const { agent, id, offerId } = await released();
    const answer = start(id);
    const command = await nextCommand(agent);
    expect(await stateOf(offerId)).toBe('unavailable');
    agent.accept(command);
    expect((await answer).status).toBe(202);
    agent.fail(command, 'CONTAINER_FAILED', 'the container did not come up');
    expect(await statusIs(renter.api, id, 'stopped')).toMatchObject({
      error_code: 'start_failed',
      gpus_released: true,
    });
    expect(await stateOf(offerId)).toBe('available');
  });
});

it('a start that is accepted in the very moment in which its caller gives up goes on', async () => {
  const { agent, id } = await stopped();
  const answer = start(id);
  const command = await nextCommand(agent);
  const { commandId, instanceId } = command;
  const outcome = CommandOutcome.COMMAND_OUTCOME_ACCEPTED;
  // The time is over, and before the caller gets a turn the host is heard.
  test.clock.advance(ANSWER_TIMEOUT_MS);
  const accepted = CommandResult.fromPartial({ commandId, instanceId, sequence: command.sequence, outcome });
  recordResult(test.core.platform, agent.hostId, accepted);
  expect((await answer).status).toBe(202);
  expect((await read(id)).status).toBe('starting');
  agent.done(command);
  await statusIs(renter.api, id, 'running');
});

describe('the end of an earlier run', () => {
  it('that is reported late is none of a start that is under way', async () => {
    const agent = await test.host({ gpus: 1 });
    const body = { offer_id: await test.offer(agent), template_id: templateId, disk_gb: 10 };
    const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
    await statusIs(renter.api, id, 'running');
    // Another run of which nothing was told before it was stopped.
    agent.reboot(id);
    const { runId = '', sequence } = agent.workloads.get(id) ?? { sequence: 0 };
    await renter.api.post(`/v1/instances/${id}/stop`);
    await statusIs(renter.api, id, 'stopped');
    agent.automatic = false;
    const answer = start(id);
    const command = await nextCommand(agent);
    agent.accept(command);
    await answer;
    const observation = { state: 'WORKLOAD_STATE_STOPPED', runId, exit: { code: 143 } };
    agent.say({ workloadReport: { instanceId: id, number: 9_000_000_000_000, sequence, observation, note: '' } });
    agent.done(command);
    expect(await statusIs(renter.api, id, 'running')).toMatchObject({ error_code: null });
  });

  it('in the words of a host that claims a higher sequence than it was given is none of it either', async () => {
    const { agent, id } = await stopped();
    const answer = start(id);
    agent.accept(await nextCommand(agent));
    await answer;
    const observation = { state: 'WORKLOAD_STATE_STOPPED', runId: 'earlier', exit: { code: 143 } };
    const instances = [{ instanceId: id, sequence: 20, gpuUuids: [], observation }];
    await agent.claim({ instances });
    await agent.claim({ instances });
    expect(await read(id)).toMatchObject({ status: 'starting', error_code: null });
  });
});
