import { requestCertificate } from '../../agent/link/certificate-request.js';
import type { ControlPlane } from '../../control-plane/app.js';
import { addCredential } from '../../control-plane/services/machines/credentials.js';
import { saveInventory } from '../../control-plane/services/machines/inventory.js';
import { Inventory } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { inventoryOf } from '../harness/fake-inventory.js';
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
    file.hosts.push({ certificate: pem, inventory });
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
