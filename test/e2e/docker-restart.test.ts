import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { statusIs } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import { OwnDocker } from '../rig/own-docker.js';
import { RealPlatform, RealRenter, fingerprintOf, type Fingerprint } from '../harness/real.js';

const LONG_MS = 180_000;

describe.each([
  ['with live-restore', true],
  ['without live-restore', false],
] as const)('a Docker that is stopped and started %s', (_name, liveRestore) => {
  let own: OwnDocker;
  let real: RealPlatform;
  let renter: RealRenter;
  let up: InstanceBody;

  beforeAll(async () => {
    own = await OwnDocker.start({ liveRestore });
    real = await RealPlatform.start({ dockerSocket: own.socket });
    renter = await RealRenter.on(real);
    const { id } = await renter.deploy();
    up = await statusIs(renter.api, id, 'running', LONG_MS);
  });
  afterAll(async () => {
    await real.stop();
    await own.remove();
  });

  const state = async (): Promise<Fingerprint | undefined> => (await fingerprintOf(up.id, own.docker))[0];
  const status = async () => (await renter.api.get<InstanceBody>(`/v1/instances/${up.id}`)).status;
  const kinds = async () =>
    (await renter.api.get<{ items: { kind: string }[] }>(`/v1/instances/${up.id}/events`)).items.map(
      ({ kind }) => kind,
    );

  /** The same container runs, the same process where nothing had to go down, and the renter gets in. */
  async function isAsItWas(before: Fingerprint | undefined): Promise<void> {
    await eventually('the workload', async () => ((await state())?.pid ?? 0) > 0, LONG_MS);
    const after = await state();
    expect(after?.Id).toBe(before?.Id);
    expect(after?.pid === before?.pid).toBe(liveRestore);
    expect(await eventually('SSH', () => renter.ssh(up, 'echo here').catch(() => undefined), LONG_MS)).toBe('here');
    expect(await status()).toBe('running');
    expect(await kinds()).not.toContain('workload_completed');
  }

  it('under the agent: an interruption, and never an end', async () => {
    const before = await state();
    await own.down();
    await own.up();
    await isAsItWas(before);
  });

  it('while the agent is down, too', async () => {
    const before = await state();
    await real.killAgent();
    await own.down();
    await own.up();
    await real.startAgent();
    await isAsItWas(before);
  });

  // How soon: docker-away.test.ts.
  it('or hangs: its offers are off the market, and back once it answers', async () => {
    const before = await state();
    const reason = async () => {
      const { items } = await real.operator.get<{ items: { id: string; unavailable_reason: string | null }[] }>(
        '/v1/operator/offers',
      );
      return items.find(({ id }) => id === renter.offerId)?.unavailable_reason ?? '';
    };
    await eventually('the host to be heard', async () => !(await reason()).includes('Docker'), LONG_MS);
    own.hang();
    try {
      await eventually('it to be told of', async () => (await reason()).includes('Docker'), LONG_MS);
    } finally {
      own.goOn();
    }
    await eventually('it to be back', async () => !(await reason()).includes('Docker'), LONG_MS);
    expect(await state()).toEqual(before);
  });

  it('under an agent that is told to stop the workload meanwhile: it stops, and starts again', async () => {
    await own.down();
    await renter.api.post(`/v1/instances/${up.id}/stop`);
    await own.up();
    await statusIs(renter.api, up.id, 'stopped', LONG_MS);
    await renter.start(up.id);
    await statusIs(renter.api, up.id, 'running', LONG_MS);
    await renter.destroy(up.id);
    expect(await own.docker.listContainers({ all: true })).toEqual([]);
  });
});
