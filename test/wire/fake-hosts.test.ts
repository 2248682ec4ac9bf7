import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { InstanceBody } from '../harness/api-client.js';
import { Daemon } from '../../scripts/daemon.js';
import { TestControlPlane, statusIs } from '../harness/control-plane.js';

const program = fileURLToPath(new URL('../../dist/test/harness/fake-hosts.js', import.meta.url));

let test: TestControlPlane;
let folder: string;

beforeAll(async () => {
  test = await TestControlPlane.start();
  folder = mkdtempSync(join(tmpdir(), 'gpurent-fake-hosts-'));
});
afterAll(async () => {
  await test.stop();
  rmSync(folder, { recursive: true });
});

it('fake hosts enroll with one token, connect, and run what is deployed on them', async () => {
  const args = [
    '--control-plane',
    test.grpcAddress,
    '--token',
    await test.enrollmentToken(20),
    '--hosts',
    '20',
    '--gpus',
    '4',
  ];
  const daemon = Daemon.start('fake-hosts', program, args, {}, join(folder, 'log'));
  try {
    const { hosts } = await daemon.firstLine<{ hosts: string[] }>();
    expect(hosts).toHaveLength(20);
    const { items } = await test.operator.get<{ items: { id: string; connected: boolean; gpus: unknown[] }[] }>(
      '/v1/operator/machines',
    );
    expect(
      items
        .filter(({ connected, gpus }) => connected && gpus.length === 4)
        .map(({ id }) => id)
        .sort(),
    ).toEqual(hosts.sort());
    const renter = await test.renter();
    const prices = { price_per_hour_micro: 1, storage_price_per_gb_hour_micro: 1 };
    const offer = await test.operator.post<{ id: string }>('/v1/operator/offers', {
      machine_id: hosts[0],
      num_gpus: 4,
      ...prices,
    });
    const body = { offer_id: offer.id, template_id: await test.template(), disk_gb: 10 };
    const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
    await statusIs(renter.api, id, 'running');
  } finally {
    await daemon.stop();
  }
});
