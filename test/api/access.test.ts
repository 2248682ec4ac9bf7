import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import type { InstanceBody } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import type { FakeAgent } from '../harness/fake-agent.js';
import { makePublicKey } from '../harness/keys.js';
import type { FakeAgentOptions } from '../harness/fake-enrollment.js';

let test: TestControlPlane;
let renter: Renter;
let keys: { id: string; fingerprint: string; line: string }[];

beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter();
  keys = [await addKey(renter), await addKey(renter)];
});
afterAll(() => test.stop());

async function addKey({ api }: Renter): Promise<{ id: string; fingerprint: string; line: string }> {
  const public_key = makePublicKey('-t', 'ed25519');
  const { id, fingerprint } = await api.post<{ id: string; fingerprint: string }>('/v1/ssh-keys', {
    name: 'key',
    public_key,
  });
  return { id, fingerprint, line: public_key.split(' ').slice(0, 2).join(' ') };
}

type Body = InstanceBody & Record<'access_token' | 'access_replacement' | 'ssh_key_fingerprint', string | null>;

const read = (id: string) => renter.api.get<Body>(`/v1/instances/${id}`);
const ask = (id: string, body?: object, { api } = renter) =>
  api.request<Body & { code: string; message: string }>('POST', `/v1/instances/${id}/access`, body);
const hashOf = (token: string | null) =>
  createHash('sha256')
    .update(token ?? '')
    .digest('hex');

/** An instance of a host that does what the test says, on which it runs. */
async function running(host: FakeAgentOptions = {}, template: object = {}, sshKey = keys[0]?.id ?? null) {
  const agent = await test.host({ gpus: 1, automatic: false, ...host });
  const env = [{ key: 'KEY', value: 'is ${SERVICE_ACCESS_TOKEN}', secret: false }];
  const template_id = await test.template({ env, ...template });
  const body = { offer_id: await test.offer(agent), template_id, disk_gb: 10, ssh_key_id: sshKey };
  const { id } = await renter.api.post<Body>('/v1/instances', body);
  agent.done(await held(agent));
  await statusIs(renter.api, id, 'running');
  return { agent, id, before: await read(id) };
}

const held = (agent: FakeAgent, desired?: string) =>
  eventually('a command', () => agent.held.find((command) => desired === undefined || command.desired === desired));
const replacementIs = (id: string, replacement: string) =>
  eventually(`access to be ${replacement}`, async () => (await read(id)).access_replacement === replacement);
const eventsOf = async (id: string) =>
  (await renter.api.get<{ items: { kind: string; message: string }[] }>(`/v1/instances/${id}/events`)).items;

describe('access that is replaced', () => {
  it('is answered with the new token, and is pending until the host has it', async () => {
    const { agent, id, before } = await running();
    expect(before.access_replacement).toBeNull();
    const { status, body } = await ask(id, { ssh_key_id: keys[1]?.id });
    expect(status).toBe(202);
    expect(body).toMatchObject({ status: 'running', access_replacement: 'pending' });
    expect(body.access_token).toMatch(/^[0-9a-f]{48}$/);
    expect(body.access_token).not.toBe(before.access_token);
    expect(body.ssh_key_fingerprint).toBe(keys[0]?.fingerprint);
    const command = await held(agent);
    expect(command).toMatchObject({
      desired: 'kept',
      access: {
        revision: 1,
        tokenHash: hashOf(body.access_token),
        sshAuthorizedKey: keys[1]?.line,
        env: expect.arrayContaining([
          { key: 'KEY', value: `is ${body.access_token}` },
          { key: 'SERVICE_ACCESS_TOKEN', value: body.access_token },
        ]) as object,
      },
    });
    expect(command.access?.env.map(({ key }) => key)).not.toContain('GPU_COUNT');
    agent.done(command);
    await replacementIs(id, 'applied');
    const kinds = (await eventsOf(id)).map(({ kind }) => kind);
    expect(kinds.slice(0, 2)).toEqual(['access_replaced', 'access_requested']);
    const ssh_key_fingerprint = keys[1]?.fingerprint;
    expect(await read(id)).toMatchObject({ status: 'running', access_token: body.access_token, ssh_key_fingerprint });
  });

  it('keeps its key without another one', async () => {
    const { agent, id } = await running();
    for (const body of [undefined, {}, { ssh_key_id: null }]) {
      expect((await ask(id, body)).status).toBe(202);
      const command = await held(agent);
      expect(command.access?.sshAuthorizedKey).toBe(keys[0]?.line);
      agent.done(command);
      await replacementIs(id, 'applied');
    }
  });

  it('is sent again under the same identity until the host has it', async () => {
    const { agent, id } = await running();
    await ask(id);
    const command = await held(agent);
    agent.held.splice(0);
    await advanceUntil('the same again', { clock: test, stepMs: 1_000, parties: [() => agent.roundTrip()] }, () => {
      return agent.held.some(({ commandId }) => commandId === command.commandId);
    });
    expect((await read(id)).access_replacement).toBe('pending');
  });

  it('comes with a stop that overtakes it, and with every start from then on', async () => {
    const { agent, id } = await running();
    const { body } = await ask(id);
    await held(agent);
    await renter.api.post(`/v1/instances/${id}/stop`);
    const stop = await held(agent, 'stopped');
    expect(stop.access).toMatchObject({ revision: 1, tokenHash: hashOf(body.access_token) });
    agent.done(stop);
    await statusIs(renter.api, id, 'stopped');
    expect((await read(id)).access_replacement).toBe('applied');
    agent.held.splice(0);

    const replaced = await ask(id);
    expect(replaced.body).toMatchObject({ status: 'stopped', access_replacement: 'pending' });
    test.advance(1_000);
    agent.automatic = true;
    await renter.api.post(`/v1/instances/${id}/start`);
    await statusIs(renter.api, id, 'running');
    expect(agent.received.filter(({ desired, sequence }) => desired === 'kept' && sequence > stop.sequence)).toEqual(
      [],
    );
    const start = agent.received.at(-1);
    expect(start?.access).toMatchObject({ revision: 2, tokenHash: hashOf(replaced.body.access_token) });
    expect(start?.running?.spec.env).toContainEqual({ key: 'KEY', value: `is ${replaced.body.access_token}` });
    expect((await read(id)).access_replacement).toBe('applied');
  });

  it('takes no time-out from a stop that is still being tried', async () => {
    const { agent, id } = await running();
    await renter.api.post(`/v1/instances/${id}/stop`);
    await held(agent, 'stopped');
    test.advance(31 * MINUTE_MS);
    agent.beat();
    expect(await read(id)).toMatchObject({ status: 'running', error_code: 'stop_timed_out' });
    await ask(id);
    const stop = await advanceUntil(
      'the stop',
      { clock: test, stepMs: 1_000, parties: [() => agent.roundTrip()] },
      () => {
        return agent.held.find(({ desired, access }) => desired === 'stopped' && access?.revision === 1);
      },
    );
    expect(agent.held.some(({ desired }) => desired === 'kept')).toBe(false);
    agent.done(stop);
    await statusIs(renter.api, id, 'stopped');
  });

  it('hides no end of the workload that is told meanwhile', async () => {
    for (const brought of [false, true]) {
      const { agent, id } = await running();
      // Its host has brought it back since, and that word was lost.
      if (brought) agent.reboot(id);
      await ask(id);
      await held(agent);
      agent.exit(id, { code: 0 });
      expect(await statusIs(renter.api, id, 'error')).toMatchObject({ error_code: 'workload_completed' });
    }
  });

  it('that an answer to an earlier replacement tells of is still pending', async () => {
    const { agent, id } = await running();
    await ask(id);
    const first = await held(agent);
    await ask(id);
    const second = await eventually('the second', () => agent.held.find((command) => command !== first));
    agent.say({
      commandResult: {
        commandId: second.commandId,
        instanceId: id,
        sequence: second.sequence,
        outcome: 'COMMAND_OUTCOME_DONE',
        accessRevision: 1,
      },
    });
    await eventually('the acknowledgement', () => agent.acknowledged.includes(second.commandId));
    expect((await read(id)).access_replacement).toBe('pending');
  });

  it('without its key is told so', async () => {
    const { agent, id } = await running();
    await ask(id, { ssh_key_id: keys[1]?.id });
    agent.doneButForKey(await held(agent));
    await replacementIs(id, 'token_only');
    expect((await eventsOf(id))[0]?.message).toContain('but still the old SSH key');
    expect((await read(id)).ssh_key_fingerprint).toBe(keys[0]?.fingerprint);
  });

  it('that a host refuses is not counted as done', async () => {
    const { agent, id } = await running();
    await ask(id);
    agent.refuse(await held(agent), 'CONTAINER_FAILED', 'this agent does not know what the command wants; upgrade it');
    await replacementIs(id, 'refused');
    expect((await eventsOf(id))[0]).toMatchObject({
      kind: 'access_refused',
      message: expect.stringContaining('upgrade it') as string,
    });
    expect(await read(id)).toMatchObject({ status: 'running', error_code: null });
  });

  it('goes out again where an older copy of the store was restored', async () => {
    const { agent, id } = await running();
    await ask(id);
    await held(agent);
    agent.disconnect();
    agent.held.splice(0);
    test.pretendRestored();
    const workload = agent.workloads.get(id);
    if (workload) workload.sequence = 10;
    await agent.connect();
    agent.done(await held(agent, 'kept'));
    await replacementIs(id, 'applied');
  });
});

describe('access is not replaced', () => {
  const refusal = async (id: string, body?: object, by = renter) => {
    const answer = await ask(id, body, by);
    return [answer.status, answer.body.code, answer.body.message];
  };

  it('while the instance is neither running nor stopped', async () => {
    const { agent, id } = await running();
    await renter.api.post(`/v1/instances/${id}/stop`);
    expect(await refusal(id)).toEqual([409, 'INVALID_STATE', expect.stringContaining('stopping')]);
    agent.exit(id, { code: 0 });
    await statusIs(renter.api, id, 'stopped');
    await renter.api.delete(`/v1/instances/${id}`);
    expect(await refusal(id)).toEqual([409, 'INVALID_STATE', expect.stringContaining('destroying')]);
  });

  it('by an agent that does not know how', async () => {
    for (const host of [{ accessReplaceable: false }, { wire: 'protocol 1' } as const]) {
      const { id, before } = await running(host);
      expect(await refusal(id)).toEqual([409, 'ACCESS_UNSUPPORTED', expect.stringContaining('too old')]);
      expect(await read(id)).toEqual(before);
    }
  });

  it('for a key that the caller may not attach', async () => {
    const { id, before } = await running();
    const foreign = await addKey(await test.renter(0));
    expect(await refusal(id, { ssh_key_id: foreign.id })).toEqual([404, 'SSH_KEY_NOT_FOUND', expect.anything()]);
    expect(await read(id)).toEqual(before);
    expect(await refusal(id, {}, await test.renter(0))).toEqual([404, 'INSTANCE_NOT_FOUND', expect.anything()]);
  });

  it('where there is none, and for a key where none can be', async () => {
    const key = { ssh_key_id: keys[1]?.id };
    const vm = await running({ vmCapable: true }, { kind: 'vm' });
    expect(await refusal(vm.id, key)).toEqual([422, 'VALIDATION_FAILED', expect.stringContaining('inside it')]);
    expect((await ask(vm.id)).status).toBe(202);
    const withoutKey = await running({}, {}, null);
    expect(await refusal(withoutKey.id, key)).toEqual([
      422,
      'VALIDATION_FAILED',
      expect.stringContaining('no SSH port'),
    ]);
    const withoutToken = await running({}, { env: [] });
    expect(await refusal(withoutToken.id)).toEqual([422, 'VALIDATION_FAILED', expect.stringContaining('is required')]);
    const { body } = await ask(withoutToken.id, key);
    expect(body.access_token).toBeNull();
    expect((await held(withoutToken.agent)).access).toMatchObject({ tokenHash: '', sshAuthorizedKey: keys[1]?.line });
  });
});

it('a member who leaves is named in what happened to each instance', async () => {
  const guest = await test.renter(0);
  const { token } = await renter.api.post<{ token: string }>('/v1/orgs/current/invites', { email: guest.email });
  await guest.api.post(`/v1/invites/${token}/accept`);
  const { id } = await running();
  const agent = await test.host({ gpus: 2 });
  const body = { offer_id: await test.offer(agent), template_id: await test.template(), disk_gb: 10 };
  const own = await guest.api.in(renter.organizationId).post<Body>('/v1/instances', body);
  const stranger = await test.renter();
  const foreign = await stranger.api.post<Body>('/v1/instances', body);
  await renter.api.delete(`/v1/orgs/current/members/${guest.userId}`);
  const told = async (of: string) => (await eventsOf(of)).find(({ kind }) => kind === 'member_left')?.message;
  expect(await told(id)).toContain(`${guest.email} has left the organization and may know`);
  expect(await told(own.id)).toContain(`${guest.email} has left the organization and deployed this instance`);
  const { items } = await stranger.api.get<{ items: { kind: string }[] }>(`/v1/instances/${foreign.id}/events`);
  expect(items.map(({ kind }) => kind)).not.toContain('member_left');
});
