import { Metadata } from '@grpc/grpc-js';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectionBy } from '../../agent/link/channel.js';
import { enroll, type Enrollment } from '../../agent/link/enrollment.js';
import type { Identity, Proof } from '../../agent/link/identity.js';
import type { TestControlPlane } from './control-plane.js';
import { INVENTORY } from './inventory.js';
import { dialWire, type WireClient } from './wire.js';

type Certified = Extract<Proof, { kind: 'certificate' }>;

/** The proof of a host that has enrolled by TLS. */
export const certified = ({ proof }: Identity) => proof as Certified;

/** Hosts that enroll by TLS and say hello. */
export class TlsHosts {
  private readonly folders: string[] = [];
  private readonly clients: WireClient[] = [];

  constructor(private readonly test: TestControlPlane) {}

  newFolder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'gpurent-host-'));
    this.folders.push(folder);
    return folder;
  }

  async enrolled(options: Partial<Enrollment> = {}): Promise<{ folder: string; identity: Identity }> {
    const folder = this.newFolder();
    const token = options.token ?? (await this.test.enrollmentToken());
    const identity = await enroll(
      folder,
      { controlPlane: this.test.grpcAddress, token, ...options },
      { inventory: INVENTORY, earlier: [] },
    );
    return { folder, identity };
  }

  dial(proof: Parameters<typeof connectionBy>[1], address = this.test.grpcAddress): WireClient {
    const client = dialWire(address, connectionBy(address, proof));
    this.clients.push(client);
    return client;
  }

  /** Returns what the control plane answers to a hello: "welcome", or why it refuses. */
  async greeting(
    proof: Parameters<typeof connectionBy>[1],
    address = this.test.grpcAddress,
    bearer?: string,
  ): Promise<string> {
    const client = this.dial(proof, address);
    const metadata = new Metadata();
    if (bearer !== undefined) metadata.set('authorization', `Bearer ${bearer}`);
    const stream = client.connect(metadata);
    return new Promise<string>((resolve) => {
      stream.on('data', (message: { message: string }) => resolve(message.message));
      stream.on('error', (error: Error) => resolve(error.message));
      stream.on('end', () => resolve('ended'));
      stream.write({ hello: { protocolMin: 1, protocolMax: 1, bootId: 'b', inventory: INVENTORY, instances: [] } });
    });
  }

  close(): void {
    for (const client of this.clients) client.close();
    for (const folder of this.folders) rmSync(folder, { recursive: true, force: true });
  }
}
