import { afterAll, beforeAll, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { statusIs } from '../harness/control-plane.js';
import { containersOf } from '../harness/docker.js';
import { eventually } from '../../scripts/eventually.js';
import { RealPlatform, RealRenter, fingerprintOf } from '../harness/real.js';

const LONG_MS = 180_000;

interface Quarantined {
  id: string;
  instance_id: string;
}

let real: RealPlatform;
let renter: RealRenter;

beforeAll(async () => {
  // As it is run in earnest: hosts prove who they are by certificates, and the authority comes out of the backup.
  real = await RealPlatform.start({ gpus: 4, controlPlaneEnv: { GPURENT_GRPC_TLS: 'on' } });
  renter = await RealRenter.on(real);
});
afterAll(() => real.stop());

const read = (id: string) => renter.api.get<InstanceBody>(`/v1/instances/${id}`);
const isUp = (id: string) => statusIs(renter.api, id, 'running', LONG_MS);
const offerState = async () => (await renter.api.get<{ state: string }>(`/v1/offers/${renter.offerId}`)).state;
const quarantine = async () =>
  (await real.operator.get<{ items: Quarantined[] }>('/v1/operator/quarantine')).items.map((item) => item);

async function running(): Promise<string> {
  const { id } = await renter.deploy();
  await isUp(id);
  return id;
}

/** What the ledger has charged an instance, in micro-dollars. */
async function charged(id: string): Promise<number> {
  const path = `/v1/billing/transactions?instance_id=${id}`;
  const { items } = await renter.api.get<{ items: { amount_micro: number }[] }>(path);
  return -items.reduce((sum, { amount_micro: amount }) => sum + amount, 0);
}

it('an older backup is restored under running workloads: none is touched, sold or charged twice', async () => {
  const [kept, stoppedLater, destroyedLater] = [await running(), await running(), await running()];
  const backup = real.path('backup.db');
  await real.control('backup', backup);

  // What the backup has not seen.
  await renter.api.post(`/v1/instances/${stoppedLater}/stop`);
  await statusIs(renter.api, stoppedLater, 'stopped', LONG_MS);
  await renter.destroy(destroyedLater);
  const [adopted, removed] = [await running(), await running()].sort();
  if (adopted === undefined || removed === undefined) throw new Error('two were deployed');
  const survivors = [kept, stoppedLater, adopted, removed];
  const before = await Promise.all(survivors.map((id) => fingerprintOf(id)));

  await expect(real.control('restore', backup)).rejects.toThrow(/another control plane is running/);
  await real.stopControlPlane();
  const { stdout } = await real.control('restore', backup);
  expect(stdout).toMatch(/at epoch \d+; what was there before is /);
  await real.startControlPlane();
  await real.renewSession();
  await eventually('the host', () => real.isConnected(), LONG_MS);

  // The host's newer word is taken over; what the backup never heard of is shown, and left alone.
  await statusIs(renter.api, kept, 'running', LONG_MS);
  await statusIs(renter.api, stoppedLater, 'stopped', LONG_MS);
  await statusIs(renter.api, destroyedLater, 'error', LONG_MS);
  expect((await quarantine()).map(({ instance_id: id }) => id).sort()).toEqual([adopted, removed]);
  expect(await Promise.all(survivors.map((id) => fingerprintOf(id)))).toEqual(before);

  // Of four GPUs one runs, one is reserved for what is stopped, two are held by what is set apart.
  expect(await offerState()).toBe('unavailable');
  const refused = await renter.api.request('POST', '/v1/instances', {
    offer_id: renter.offerId,
    template_id: renter.templateId,
    disk_gb: 10,
    ssh_key_id: renter.sshKeyId,
  });
  expect(refused.body).toMatchObject({ code: 'OFFER_UNAVAILABLE' });

  for (const { id, instance_id: instanceId } of await quarantine()) {
    if (instanceId === removed) {
      await real.operator.post(`/v1/operator/quarantine/${id}/remove`);
      continue;
    }
    await real.operator.post(`/v1/operator/quarantine/${id}/adopt`, {});
  }
  await eventually('quarantine to end', async () => (await quarantine()).length === 0, LONG_MS);
  expect(await containersOf(removed)).toEqual([]);
  await isUp(adopted);
  expect(await fingerprintOf(adopted)).toEqual(before[survivors.indexOf(adopted)]);
  // As it was deployed, and reached at once.
  expect(await read(adopted)).toMatchObject({ template: { id: renter.templateId } });
  expect(await renter.ssh(await read(adopted), 'echo here')).toBe('here');
  await eventually('its GPU', async () => (await offerState()) === 'available', LONG_MS);

  // All of it goes on as if nothing had been: charged from the backup on, and never for more than the time that has passed.
  const elapsedMs = Date.now() - Date.parse(String((await read(kept))['created_at']));
  await eventually('a charge', async () => (await charged(kept)) > 0, 2 * LONG_MS);
  expect(await charged(kept)).toBeLessThanOrEqual(((elapsedMs + 2 * LONG_MS) * 1_000_000) / 3_600_000);
  await renter.api.post(`/v1/instances/${stoppedLater}/start`);
  await isUp(stoppedLater);
  for (const id of [kept, stoppedLater, destroyedLater, adopted]) await renter.destroy(id);
  expect((await Promise.all([...survivors, destroyedLater].map((id) => containersOf(id)))).flat()).toEqual([]);
});
