import { expect, it } from 'vitest';
import { TestControlPlane, statusIs } from '../harness/control-plane.js';
import { makePoor } from '../harness/poor.js';

const KEY = `ssh-ed25519 ${'A'.repeat(68)}`;

it('the SSH host key of an instance is the last one that its host has seen, if it is one', async () => {
  const test = await TestControlPlane.start();
  const { agent, renter, id } = await makePoor(test, await test.template());
  const read = async () => (await renter.api.get<{ ssh_host_key: string | null }>(`/v1/instances/${id}`)).ssh_host_key;
  const say = async (sshHostKey: string) => {
    const workload = agent.workloads.get(id);
    if (workload) agent.workloads.set(id, { ...workload, sshHostKey });
    await agent.speak(id);
    return read();
  };
  expect(await read()).toBeNull();
  for (const wrong of [`${KEY}\n* ${KEY}`, ` ${KEY}`, `${KEY}A`, `ssh-dss ${'A'.repeat(68)}`, 'x'.repeat(100_000)])
    expect(await say(wrong)).toBeNull();
  expect(await say(KEY)).toBe(KEY);
  // The next run, of which the host has not seen the key yet.
  expect(await say('')).toBe(KEY);
  await renter.api.post(`/v1/instances/${id}/stop`);
  await statusIs(renter.api, id, 'stopped');
  expect(await read()).toBe(KEY);
  const next = `ssh-ed25519 ${'B'.repeat(68)}`;
  await renter.api.post(`/v1/instances/${id}/start`);
  await statusIs(renter.api, id, 'running');
  expect(await say(next)).toBe(next);
  await test.stop();
});
