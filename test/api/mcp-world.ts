import type { InstanceBody } from '../harness/api-client.js';
import { statusIs, TestControlPlane, type Renter } from '../harness/control-plane.js';
import type { FakeAgent } from '../harness/fake-agent.js';
import { TestMcpClient, type Answers, type Era } from '../harness/mcp-client.js';

export const PRICE = 1_000_000;

/** A marketplace with a renter, whose agent uses /mcp. */
export class McpWorld {
  private readonly clients: TestMcpClient[] = [];

  private constructor(
    readonly test: TestControlPlane,
    readonly renter: Renter,
    readonly host: FakeAgent,
    readonly deploy: { offer_id: string; template_id: string; disk_gb: number },
  ) {}

  static async make(): Promise<McpWorld> {
    const test = await TestControlPlane.start();
    const host = await test.host({ gpus: 8 });
    const deploy = { offer_id: await test.offer(host, 1, PRICE), template_id: await test.template(), disk_gb: 10 };
    return new McpWorld(test, await test.renter(), host, deploy);
  }

  async stop(): Promise<void> {
    await this.closeClients();
    await this.test.stop();
  }

  /** Starts the control plane again; its host is back, too. */
  async restart(changes: { publicUrl?: string } = {}): Promise<void> {
    await this.test.restart(changes);
    await this.host.connect();
  }

  async closeClients(): Promise<void> {
    await Promise.all(this.clients.splice(0).map((client) => client.close()));
  }

  async key(restrictions: object = {}): Promise<{ id: string; secret: string }> {
    const asked = { name: 'agent', ...restrictions };
    const { key, secret } = await this.renter.api.post<{ key: { id: string }; secret: string }>('/v1/api-keys', asked);
    return { id: key.id, secret };
  }

  async client(options: { secret?: string; era?: Era; answers?: Answers; headers?: Record<string, string> } = {}) {
    const { secret = (await this.key()).secret, ...rest } = options;
    const client = await TestMcpClient.connect({ url: this.test.url, secret, ...rest });
    this.clients.push(client);
    return client;
  }

  async instances(): Promise<InstanceBody[]> {
    return (await this.renter.api.get<{ items: InstanceBody[] }>('/v1/instances')).items;
  }

  /** An offer of its own: each is rented at most once. */
  async freshOffer(): Promise<{ offer_id: string; template_id: string; disk_gb: number }> {
    return { ...this.deploy, offer_id: await this.test.offer(this.host, 1, PRICE) };
  }

  async running(label: string | null = null): Promise<string> {
    const { id } = await this.renter.api.post<InstanceBody>('/v1/instances', { ...this.deploy, label });
    await statusIs(this.renter.api, id, 'running');
    return id;
  }

  async destroyAll(): Promise<void> {
    for (const { id } of await this.instances()) {
      await this.renter.api.delete(`/v1/instances/${id}`);
      await statusIs(this.renter.api, id, 'destroyed');
    }
  }
}
