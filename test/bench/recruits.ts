import { requestCertificate } from '../../agent/link/certificate-request.js';
import type { ControlPlane } from '../../control-plane/app.js';
import { getOrganization } from '../../control-plane/services/organizations/organizations.js';
import { addCredential } from '../../control-plane/services/machines/credentials.js';
import { saveInventory } from '../../control-plane/services/machines/inventory.js';
import { Inventory } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { inventoryOf } from '../harness/fake-inventory.js';
import { query } from '../../control-plane/store/sql.js';
import type { FleetFile } from './fleet.js';

const GPUS = 8;

/** Makes machines with a certificate each. They share a key: that changes the cost of no handshake. */
export async function recruit({ platform }: ControlPlane, count: number): Promise<FleetFile> {
  const { authority, store, ids } = platform;
  const { key, request } = await requestCertificate();
  const file: FleetFile = { keys: { authority: await authority.certificate(), key }, hosts: [] };
  const credentials = new Map<string, { hash: string; expiresAt: number }>();
  for (let index = 0; index < count; index++) {
    const hostId = ids.uuid();
    const { pem, fingerprint, expiresAt } = await authority.certifyHost(request, hostId);
    const inventory = Inventory.fromJSON(inventoryOf({ name: `bench-${index}`, gpus: GPUS }));
    file.hosts.push({ id: hostId, certificate: pem, inventory });
    credentials.set(hostId, { hash: fingerprint, expiresAt });
  }
  store.transact((tx) => {
    let index = 0;
    for (const [hostId, credential] of credentials) {
      const host = file.hosts[index++];
      if (host) saveInventory(tx, hostId, host.inventory);
      addCredential(tx, hostId, credential);
    }
  });
  return file;
}

/** The instances that an organization may have. */
const OF_ONE_ORGANIZATION = 25;

/** Gives each host a running copy of an instance, and as many organizations as that takes. */
export function addRuns({ platform }: ControlPlane, file: FleetFile, instanceId: string): FleetFile {
  const { store, ids } = platform;
  return store.transact((tx) => {
    const instance = tx.get(query.selectFrom('instances').selectAll().where('id', '=', instanceId));
    const meters = query.selectFrom('meter_intervals').selectAll().where('instance_id', '=', instanceId);
    const meter = tx.get(meters.where('closed_at', 'is', null));
    if (!instance || !meter) throw new Error('the instance does not run');
    const { id: _, ...interval } = meter;
    const owner = getOrganization(tx, instance.organization_id);
    let organization_id = '';
    const hosts = file.hosts.map((host, index) => {
      if (index % OF_ONE_ORGANIZATION === 0) {
        organization_id = ids.uuid();
        tx.run(query.insertInto('organizations').values({ ...owner, id: organization_id }));
      }
      const copy = { id: ids.uuid(), machine_id: host.id, organization_id };
      tx.run(query.insertInto('instances').values({ ...instance, ...copy }));
      const its = { instance_id: copy.id, machine_id: host.id, organization_id };
      tx.run(query.insertInto('meter_intervals').values({ ...interval, ...its }));
      return { ...host, run: { instanceId: copy.id, sequence: instance.sequence } };
    });
    return { ...file, hosts };
  });
}
