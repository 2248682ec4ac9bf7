import { expect, it } from 'vitest';
import type { ApiClient, InstanceBody } from '../harness/api-client.js';
import { statusIs } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';

/** What a host offers to the suite, be it a fake or an agent on a real Docker. */
export interface SuiteHost {
  renter: ApiClient;
  offerId: string;
  templateId: string;
  sshKeyId: string;
  /** Otherwise as long as for any condition. */
  timeoutMs?: number;
}

interface OfferBody {
  state: string;
  machine: { disk_available_gb: number };
}

const DISK_GB = 10;

/** The life of an instance through the public API alone. The fake agent and the real one pass the same. */
export function describeHost(host: () => SuiteHost): void {
  const deploy = async (fields: Record<string, unknown> = {}) => {
    const { renter, offerId: offer_id, templateId: template_id, sshKeyId: ssh_key_id } = host();
    return renter.post<InstanceBody>('/v1/instances', {
      offer_id,
      template_id,
      ssh_key_id,
      disk_gb: DISK_GB,
      ...fields,
    });
  };
  const reach = (id: string, status: string) => statusIs(host().renter, id, status, host().timeoutMs);

  it('deploys, stops, starts and destroys', async () => {
    const { renter, offerId, timeoutMs } = host();
    const before = await renter.get<OfferBody>(`/v1/offers/${offerId}`);
    const created = await deploy({ label: 'mine' });
    expect(created).toMatchObject({
      status: 'creating',
      label: 'mine',
      ssh_host: null,
      ssh_port: null,
      started_at: null,
    });
    expect(created.allowed_actions).toEqual(['destroy']);

    const running = await reach(created.id, 'running');
    expect(running.ssh_host).not.toBeNull();
    expect(running.ssh_port).toBeGreaterThan(1023);
    expect(running.allowed_actions).toEqual(['stop', 'destroy']);

    const stopping = await renter.post<InstanceBody>(`/v1/instances/${created.id}/stop`);
    expect(stopping.status).toBe('stopping');
    const stopped = await reach(created.id, 'stopped');
    expect(stopped).toMatchObject({
      ssh_host: null,
      ssh_port: null,
      gpus_released: false,
      allowed_actions: ['start', 'destroy'],
    });

    const starting = await renter.post<InstanceBody>(`/v1/instances/${created.id}/start`);
    expect(starting.status).toBe('starting');
    const again = await reach(created.id, 'running');
    expect(again).toMatchObject({ ssh_port: running.ssh_port, started_at: running['started_at'], error_code: null });

    const destroying = await renter.delete<InstanceBody>(`/v1/instances/${created.id}`);
    expect(destroying.status).toBe('destroying');
    const destroyed = await reach(created.id, 'destroyed');
    expect(destroyed).toMatchObject({ allowed_actions: [], access_token: null, ssh_port: null });
    await eventually(
      'the offer to be back',
      async () => {
        const offer = await renter.get<OfferBody>(`/v1/offers/${offerId}`);
        const lackingGb = before.machine.disk_available_gb - offer.machine.disk_available_gb;
        // Less than its disk may be missing: other tests write to the disk of a real host meanwhile.
        return offer.state === 'available' && lackingGb < DISK_GB;
      },
      timeoutMs,
    );
  });

  it('is destroyed while it is being created', async () => {
    const created = await deploy();
    await host().renter.delete(`/v1/instances/${created.id}`);
    await reach(created.id, 'destroyed');
  });

  it('refuses what its status does not allow, naming the status', async () => {
    const { renter } = host();
    const { id } = await deploy();
    await reach(id, 'running');
    const start = await renter.request<Record<string, string>>('POST', `/v1/instances/${id}/start`);
    expect(start.status).toBe(409);
    expect(start.body).toMatchObject({ code: 'INVALID_STATE', message: expect.stringContaining('running') as string });
    await renter.delete(`/v1/instances/${id}`);
    await reach(id, 'destroyed');
    const again = await renter.request('DELETE', `/v1/instances/${id}`);
    expect(again.status).toBe(409);
    expect(again.body).toMatchObject({
      code: 'INVALID_STATE',
      message: expect.stringContaining('destroyed') as string,
    });
  });
}
