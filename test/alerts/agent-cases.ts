import { expect } from 'vitest';
import { DAY_MS } from '../../shared/time.js';
import type { InstanceBody } from '../harness/api-client.js';
import { advanceUntil } from '../harness/advance-until.js';
import { makePublicKey } from '../harness/keys.js';
import { MINUTE_MS, type AlertCase } from './cases.js';
import type { Installation } from './installation.js';
import type { WatchedAgent } from './watched-agent.js';

/** A case of an agent: `provoke` has it at hand. */
function onAgent(
  its: Omit<AlertCase, 'agent' | 'provoke'>,
  provoke: (agent: WatchedAgent, installation: Installation) => ReturnType<AlertCase['provoke']>,
): AlertCase {
  return {
    ...its,
    agent: true,
    provoke: (installation) => {
      if (!installation.agent) throw new Error('there is no agent');
      return provoke(installation.agent, installation);
    },
  };
}

/** What moves when the hosts and the agent have had their turns, too. */
const clockOf = (installation: Installation) => ({ advance: (ms: number) => installation.pass(ms) });

/** Waits, while time passes, until the agent's own status is so. */
function until(
  installation: Installation,
  what: string,
  look: (status: Awaited<ReturnType<WatchedAgent['snapshot']>>) => boolean,
  stepMs = 1_000,
): Promise<unknown> {
  return advanceUntil(what, { clock: clockOf(installation), stepMs }, async () => {
    return installation.agent && look(await installation.agent.snapshot());
  });
}

const revoked = onAgent(
  {
    how: 'an operator has revoked its credential',
    summary: /^The agent at gpu1 has no connection to a control plane$/,
    also: ['GpurentHostAway'],
  },
  async (agent, installation) => {
    const { operator } = installation.controlPlane;
    await operator.delete(`/v1/operator/machines/${agent.hostId}/credentials`);
    await until(installation, 'its refusal', ({ refusal }) => refusal?.reason.includes('revoked') ?? false);
    expect((await agent.snapshot()).refusal?.remedy).toMatch(/--again/);
    return async () => {
      const of = { machine_id: agent.hostId };
      const { token } = await operator.post<{ token: string }>('/v1/operator/enrollment-tokens', of);
      await agent.enroll({ token, again: true });
      await until(installation, 'it to be connected', ({ connected }) => connected);
    };
  },
);

const DOCKER_DOWN = /^Docker does not answer the agent at gpu1$/;

const dockerEnded = onAgent({ how: 'Docker has ended', summary: DOCKER_DOWN }, async (agent, installation) => {
  agent.docker.close();
  await until(installation, 'it to notice', ({ dockerAvailable }) => !dockerAvailable);
  return async () => {
    await agent.openDocker();
    await until(installation, 'it to notice', ({ dockerAvailable }) => dockerAvailable);
  };
});

const dockerHangs = onAgent({ how: 'Docker hangs', summary: DOCKER_DOWN }, async (agent, installation) => {
  agent.docker.isSilent = true;
  await until(installation, 'it to notice', ({ dockerAvailable }) => !dockerAvailable);
  return async () => {
    agent.docker.close();
    await agent.openDocker();
    await until(installation, 'it to notice', ({ dockerAvailable }) => dockerAvailable);
  };
});

const callHangs = onAgent(
  {
    how: 'one call is not answered',
    summary: /^Docker at gpu1 has not answered a call for 11m 0s$/,
  },
  async (agent, installation) => {
    const answer = agent.runtime.leaveUnanswered('some instance');
    await installation.pass(11 * MINUTE_MS);
    expect((await agent.snapshot()).unanswered).toMatchObject([{ instanceId: 'some instance' }]);
    return async () => answer();
  },
);

const UNREACHABLE = /^The host at gpu1 accepts no new work$/;

const fullJournal = onAgent(
  { how: 'the disk of its journal is full', summary: UNREACHABLE },
  async (agent, installation) => {
    const isHeldBack = ({ obstacle }: { obstacle: string }) =>
      obstacle.includes('the journal of this host cannot be written');
    const passing = { clock: clockOf(installation), stepMs: 5_000 };
    await advanceUntil('its reserve to be used up', passing, async () => {
      // What the agent gives up of it, others take.
      agent.stateDisk.fill();
      return isHeldBack(await agent.snapshot());
    });
    return async () => {
      agent.stateDisk.makeRoom();
      await until(installation, 'it to go on', (status) => !isHeldBack(status));
    };
  },
);

const silentSsh = onAgent({ how: 'SSH is silent', summary: UNREACHABLE }, async (agent, installation) => {
  const { controlPlane: test } = installation;
  const { api } = await test.renter();
  const public_key = makePublicKey('-t', 'ed25519');
  const { id: ssh_key_id } = await api.post<{ id: string }>('/v1/ssh-keys', { name: 'key', public_key });
  const offer = { machine_id: agent.hostId, num_gpus: 1, price_per_hour_micro: 1, storage_price_per_gb_hour_micro: 1 };
  const { id: offer_id } = await test.operator.post<{ id: string }>('/v1/operator/offers', offer);
  agent.runtime.sshUp = false;
  const template_id = await test.template({ image: 'image:1' });
  const { id } = await api.post<InstanceBody>('/v1/instances', { offer_id, template_id, disk_gb: 10, ssh_key_id });
  await until(installation, 'it to find out', ({ obstacle }) => obstacle.startsWith('SSH to workloads on this host'));
  const passing = { clock: clockOf(installation), stepMs: 1_000 };
  const { error_message } = await advanceUntil('the start to be given up', passing, async () => {
    const instance = await api.get<InstanceBody>(`/v1/instances/${id}`);
    return instance.status === 'error' && instance;
  });
  expect(error_message).toMatch(
    /SSH to workloads on this host does not answer.*; nothing is charged: take another machine/,
  );
  return async () => {
    agent.runtime.sshUp = true;
    await until(installation, 'it to look again', ({ obstacle }) => obstacle === '');
  };
});

const gpusFail = onAgent(
  { how: 'no container with a GPU starts', summary: UNREACHABLE },
  async (agent, installation) => {
    const testsUntil = async (isHeldBack: boolean) => {
      for (let test = 0; test < 2; test++) {
        await installation.pass(MINUTE_MS);
        await agent.testGpus();
      }
      expect((await agent.snapshot()).obstacle.startsWith('no container with a GPU starts')).toBe(isHeldBack);
    };
    agent.gpuShows = { kind: 'failed', reason: 'the hook refuses' };
    await testsUntil(true);
    return async () => {
      agent.gpuShows = { kind: 'passed', reason: '' };
      await testsUntil(false);
    };
  },
);

const diskLow = onAgent(
  {
    how: 'little is left of the disk of Docker',
    summary: /^Renters' disks at gpu1 are nearly full: 15 GB are left$/,
  },
  async (agent) => {
    agent.dataDisk.resize('15g');
    return async () => agent.dataDisk.resize('100g');
  },
);

const certificateEnds = onAgent(
  {
    how: 'the certificate of its guarded ports ends in a week',
    summary: /^The certificate "web" of gpu1 is valid for 6d 23h \d+m \d+s$/,
  },
  async (agent) => {
    agent.certificates = [{ name: 'web', expiresAt: Date.now() + 7 * DAY_MS - 1_000 }];
    return async () => {
      agent.certificates = [];
    };
  },
);

/** By alert. */
export const agentCases: Readonly<Record<string, readonly AlertCase[]>> = {
  GpurentAgentDisconnected: [revoked],
  GpurentDockerDown: [dockerEnded, dockerHangs],
  GpurentDockerCallHangs: [callHangs],
  GpurentHostUnreachable: [fullJournal, silentSsh, gpusFail],
  GpurentHostDiskLow: [diskLow],
  GpurentHostCertificateExpires: [certificateEnds],
};
