import { expect } from 'vitest';
import type { ApiClient, InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs, type Renter } from '../harness/control-plane.js';
import { eventually } from '../../scripts/eventually.js';
import type { FakeAgent } from '../harness/fake-agent.js';
import { makePublicKey } from '../harness/keys.js';
import type { FakeAgentOptions } from '../harness/fake-enrollment.js';

export const NOWHERE = '00000000-0000-4000-8000-000000000000';
export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
export const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

export interface ApiKeyBody {
  id: string;
  name: string;
  kind: 'personal' | 'team';
  prefix: string;
  creator_email: string;
  creator_id: string;
  created_at: string;
  last_used_at: string | null;
  creator_is_member: boolean;
}

export interface Key {
  key: ApiKeyBody;
  secret: string;
  api: ApiClient;
}

export interface Refused {
  code: string;
  message: string;
  [field: string]: unknown;
}

/** A marketplace with one organization of an admin and a member, a stranger, and a host to rent. */
export class World {
  templateId = '';
  sshKeyId = '';

  private constructor(
    readonly test: TestControlPlane,
    readonly admin: Renter,
    readonly member: Renter,
    readonly stranger: Renter,
  ) {}

  static async make(): Promise<World> {
    const test = await TestControlPlane.start();
    const admin = await test.renter();
    const world = new World(test, admin, await joined(test, admin), await test.renter());
    world.templateId = await test.template();
    world.sshKeyId = await world.sshKey(admin);
    return world;
  }

  stop(): Promise<void> {
    return this.test.stop();
  }

  /** Another member of the organization. */
  join(role = 'member'): Promise<Renter> {
    return joined(this.test, this.admin, role);
  }

  async leave(member: Renter): Promise<void> {
    await member.api.delete(`/v1/me/organizations/${this.admin.organizationId}`);
  }

  async key(kind: 'personal' | 'team' = 'personal', by: Renter = this.admin, name = kind as string): Promise<Key> {
    const minted = await this.inOrg(by).post<Omit<Key, 'api'>>('/v1/api-keys', { name, kind });
    return { ...minted, api: this.test.api.as(minted.secret) };
  }

  /** A session that acts in the organization, also where it is not the one that its user joined first. */
  inOrg(renter: Renter): ApiClient {
    return renter.api.in(this.admin.organizationId);
  }

  async sshKey(of: Renter): Promise<string> {
    const key = { name: 'laptop', public_key: makePublicKey('-t', 'ed25519') };
    return (await of.api.post<{ id: string }>('/v1/ssh-keys', key)).id;
  }

  /** A host with a deploy that fits it. */
  async host(options: FakeAgentOptions = {}): Promise<{ agent: FakeAgent; body: DeployBody }> {
    const agent = await this.test.host(options);
    const body = { offer_id: await this.test.offer(agent), template_id: this.templateId, disk_gb: 10 };
    return { agent, body };
  }

  /** The status with which a deploy is answered; an accepted one is waited for, so that nothing goes on behind the test. */
  async deploys(body: object, api = this.admin.api): Promise<number> {
    const { status, body: instance } = await api.request<InstanceBody>('POST', '/v1/instances', body);
    if (status === 201) await statusIs(api, instance.id, 'running');
    return status;
  }

  async running(body: object, api = this.admin.api): Promise<InstanceBody> {
    const { id } = await api.post<InstanceBody>('/v1/instances', body);
    return statusIs(api, id, 'running');
  }

  async stopped(body: object, api = this.admin.api): Promise<InstanceBody> {
    const { id } = await this.running(body, api);
    await api.post(`/v1/instances/${id}/stop`);
    return statusIs(api, id, 'stopped');
  }

  /** An instance in each of its statuses, on a host that answers nothing by itself from then on. */
  async inEveryStatus(): Promise<Record<string, string>> {
    const { agent, body } = await this.host({ gpus: 8 });
    const ids: Record<string, string> = {
      running: (await this.running(body)).id,
      stopped: (await this.stopped(body)).id,
      starting: (await this.stopped(body)).id,
      stopping: (await this.running(body)).id,
      error: (await this.running(body)).id,
      destroying: (await this.running(body)).id,
      destroyed: (await this.running(body)).id,
    };
    const api = this.admin.api;
    await api.delete(`/v1/instances/${ids['destroyed']}`);
    await statusIs(api, ids['destroyed'] ?? '', 'destroyed');
    agent.exit(ids['error'] ?? '', { code: 1 });
    await statusIs(api, ids['error'] ?? '', 'error');
    agent.automatic = false;
    ids['creating'] = (await api.post<InstanceBody>('/v1/instances', body)).id;
    await api.post(`/v1/instances/${ids['stopping']}/stop`);
    await api.delete(`/v1/instances/${ids['destroying']}`);
    const start = api.post(`/v1/instances/${ids['starting']}/start`);
    agent.accept(await eventually('the start', () => agent.held.find(({ running }) => running && !running.mayCreate)));
    await start;
    return ids;
  }

  /** What a refused request answers; the store is as it was. */
  async refused(api: ApiClient, method: string, path: string, body?: unknown): Promise<Refused & { status: number }> {
    const before = this.test.dump();
    const answer = await api.request<Refused>(method, path, body);
    expect(answer.status, JSON.stringify(answer.body)).toBeGreaterThanOrEqual(400);
    expect(this.test.dump()).toEqual(before);
    return { status: answer.status, ...answer.body };
  }
}

export interface DeployBody {
  offer_id: string;
  template_id: string;
  disk_gb: number;
}

/** Makes a renter without money who has joined the organization of `admin`. */
export async function joined(test: TestControlPlane, admin: Renter, role = 'member'): Promise<Renter> {
  const guest = await test.renter(0);
  const invitation = { email: guest.email, role };
  const { token } = await admin.api.post<{ token: string }>('/v1/orgs/current/invites', invitation);
  test.clock.advance(1);
  await guest.api.post(`/v1/invites/${token}/accept`);
  return guest;
}
