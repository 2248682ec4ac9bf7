import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { statusIs } from '../harness/control-plane.js';
import { CutOff } from '../rig/cut-off.js';
import { containersOf } from '../harness/docker.js';
import { eventually } from '../../scripts/eventually.js';
import { RealPlatform, RealRenter, fingerprintOf } from '../harness/real.js';

const LONG_MS = 180_000;
/** As long as one is cut off that nobody is to notice: half of the time that an answer to the keepalive may take. */
const BRIEF_MS = 5_000;

let network: CutOff;
let real: RealPlatform;
let renter: RealRenter;

beforeAll(async () => {
  network = new CutOff(1);
  real = await RealPlatform.start({
    wayToControlPlane: (address) => network.wayTo(address),
  });
  renter = await RealRenter.on(real);
});
afterAll(async () => {
  await real.stop();
  network.close();
});

const passes = (ms: number) => {
  const since = performance.now();
  return eventually('time to pass', () => performance.now() - since >= ms, LONG_MS);
};

it('a host that is cut off for a few seconds: nobody notices, and nothing is touched', async () => {
  const { id } = await renter.deploy();
  const up = await statusIs(renter.api, id, 'running', LONG_MS);
  const before = await fingerprintOf(id);
  network.pull();
  await passes(BRIEF_MS);
  expect(await real.isConnected()).toBe(true);
  network.plug();
  expect(await renter.ssh(up, 'echo here')).toBe('here');
  expect((await renter.api.get<InstanceBody>(`/v1/instances/${id}`)).status).toBe('running');
  expect(await fingerprintOf(id)).toEqual(before);
  await renter.destroy(id);
});

it('a host that is cut off for longer is away, keeps what it runs, and does what was asked once it is back', async () => {
  const [kept, stopped] = [await renter.deploy(), await renter.deploy()];
  for (const { id } of [kept, stopped]) await statusIs(renter.api, id, 'running', LONG_MS);
  const before = await fingerprintOf(kept.id);
  network.pull();
  await eventually('the host to be away', async () => !(await real.isConnected()), LONG_MS);
  expect((await renter.api.get<InstanceBody>(`/v1/instances/${kept.id}`)).status).toBe('running');
  await renter.api.post(`/v1/instances/${stopped.id}/stop`);
  expect((await containersOf(stopped.id)).map(({ State }) => State)).toEqual(['running']);

  network.plug();
  await eventually('the host to be back', () => real.isConnected(), LONG_MS);
  await statusIs(renter.api, stopped.id, 'stopped', LONG_MS);
  expect(await fingerprintOf(kept.id)).toEqual(before);
  expect((await renter.api.get<InstanceBody>(`/v1/instances/${kept.id}`)).status).toBe('running');
  expect((await containersOf(stopped.id)).map(({ State }) => State)).toEqual(['exited']);
  for (const { id } of [kept, stopped]) await renter.destroy(id);
});
