import { randomUUID } from 'node:crypto';
import { MINUTE_MS } from '../../shared/time.js';
import type { InstanceBody } from './api-client.js';
import { linkedAccount, setCompany } from './companies.js';
import { TestConsole } from './console.js';
import { operatorsPages, rentersPages } from './console-pages.js';
import { statusIs, type Renter } from './control-plane.js';
import type { FakeAgent } from './fake-agent.js';
import { makePublicKey } from './keys.js';
import { addApp } from './second-factors.js';
import { WebhookReceiver } from './webhook-receiver.js';

/** A marketplace in which every page has something to show, and every act is open to somebody. */
export interface FullMarketplace {
  /** The admin of an organization with instances, members, keys, invitations, templates and webhooks. */
  renter: Renter;
  /** The admin of one that disputes a payment while instances run, and demands a second factor. */
  disputed: Renter;
  suspended: Renter;
  operator: Renter;
  offer: string;
  template: string;
  ownTemplate: string;
  instances: Record<'running' | 'stopped' | 'failed', string>;
  endpoint: string;
  machines: string[];
}

/** Starts a console whose control plane is filled. */
export async function startFullMarketplace() {
  const receiver = await WebhookReceiver.start();
  const test = await TestConsole.start({ webhooks: receiver.reachable });
  const stop = async () => {
    await test.stop();
    await receiver.stop();
  };
  return { test, world: await fillMarketplace(test, receiver), stop };
}

async function fillMarketplace({ control }: TestConsole, receiver: WebhookReceiver): Promise<FullMarketplace> {
  const { machines, agent, offer } = await fillFleet(control);
  const renter = await control.renter();
  const disputed = await control.renter();
  const suspended = await control.renter();
  const operator = await control.renter(0);
  control.makeOperator(operator.userId);
  const template = await control.template({ name: 'PyTorch', mode: ['ssh', 'jupyter'], readme: '# What it has' });
  const filled = await fillOrganization(control, renter, { agent, offer, template, receiver });
  await addApp(control, renter.api);
  await act(control, `users/${renter.userId}/second-factor-removal`);
  await addApp(control, disputed.api);
  await disputed.api.put('/v1/orgs/current/second-factor', { required: true });
  const body = { offer_id: offer, template_id: template, disk_gb: 10 };
  for (const label of ['one', 'two']) {
    const { id } = await disputed.api.post<InstanceBody>('/v1/instances', { ...body, label });
    await statusIs(disputed.api, id, 'running');
  }
  linkedAccount(control, renter);
  await setCompany(control, 'https://login.acme.example/realms/staff');
  await act(control, `organizations/${suspended.organizationId}/suspend`, { keep_disks_days: 30 });
  await act(control, `organizations/${disputed.organizationId}/dispute`);
  return { renter, disputed, suspended, operator, offer, template, machines, ...filled };
}

/** Returns the addresses of every page as the admin of the full organization, with instances of each state. */
export function rentersAddresses({ offer, template, ownTemplate, instances, endpoint }: FullMarketplace): string[] {
  const [first, ...others] = Object.values(instances);
  const ids = { offer, template, ownTemplate, webhook: endpoint, ...(first === undefined ? {} : { instance: first }) };
  return [
    ...rentersPages(ids).map(({ path }) => path),
    ...others.map((id) => `/instances/${id}`),
    `/templates/${ownTemplate}`,
  ];
}

/** Returns the addresses of every page for operators, with machines, organizations and users of each kind. */
export function operatorsAddresses({
  template,
  machines,
  renter,
  disputed,
  suspended,
  operator,
}: FullMarketplace): string[] {
  const [machine = '', ...others] = machines;
  const ids = {
    machine,
    organization: renter.organizationId,
    user: renter.email,
    company: 'acme',
    systemTemplate: template,
  };
  return [
    ...operatorsPages(ids).map(({ path }) => path),
    ...others.map((id) => `/operator/machines/${id}`),
    ...[disputed, suspended].map(({ organizationId }) => `/operator/organizations/${organizationId}`),
    `/operator/users?email=${encodeURIComponent(operator.email)}`,
  ];
}

type Control = TestConsole['control'];

const act = ({ operator }: Control, path: string, body: object = {}) =>
  operator.post(`/v1/operator/${path}`, { reason: 'for the test', ...body });

/** One machine that is rented, one that is away and cordoned, one whose disks have no quota but a waiver, one with a workload in quarantine. */
async function fillFleet(control: Control) {
  const agent = await control.host({ name: 'amber', gpus: 8 });
  const away = await control.host({ name: 'birch', diskQuota: 'none' });
  const waived = await control.host({ name: 'cedar', diskQuota: 'none' });
  const restored = await control.host({ name: 'dogwood', gpus: 1 });
  const window = { starts_at: inDays(control, 1), ends_at: inDays(control, 2) };
  await control.operator.post(`/v1/operator/machines/${away.hostId}/cordon`);
  await control.operator.put(`/v1/operator/machines/${away.hostId}/maintenance`, window);
  await control.operator.put(`/v1/operator/machines/${waived.hostId}/disk-quota-waiver`);
  await control.operator.post('/v1/operator/enrollment-tokens', {});
  await control.operator.post('/v1/operator/enrollment-tokens', { machine_id: away.hostId, expires_in_hours: 1 });
  away.disconnect();
  restored.disconnect();
  const workload = {
    state: 'WORKLOAD_STATE_RUNNING' as const,
    sequence: 7,
    sshPort: 40_123,
    gpuUuids: [],
    lines: [],
    diskGb: 40,
  };
  restored.workloads.set(randomUUID(), workload);
  await restored.connect();
  const machines = [agent, away, waived, restored].map(({ hostId }) => hostId);
  const offer = await control.offer(agent);
  await control.operator.request('PATCH', `/v1/operator/offers/${offer}`, { release_stopped_after_hours: 24 });
  return { machines, agent, offer };
}

function inDays(control: Control, days: number): string {
  return new Date(control.clock.now() + days * 24 * 60 * MINUTE_MS).toISOString();
}

interface Given {
  agent: FakeAgent;
  offer: string;
  template: string;
  receiver: WebhookReceiver;
}

async function fillOrganization(control: Control, { api, email }: Renter, { agent, offer, template, receiver }: Given) {
  const deploy = async (label: string, status: string) => {
    const body = { offer_id: offer, template_id: template, disk_gb: 10, label };
    const { id } = await api.post<InstanceBody>('/v1/instances', body);
    await statusIs(api, id, 'running');
    if (status === 'stopped') await api.post(`/v1/instances/${id}/stop`);
    if (status === 'error') agent.exit(id, { code: 1, lastLines: ['out of memory'] });
    await statusIs(api, id, status);
    return id;
  };
  const instances = {
    running: await deploy('train', 'running'),
    stopped: await deploy('evaluate', 'stopped'),
    failed: await deploy('render', 'error'),
  };
  agent.print(instances.running, 'epoch 1');
  const ownTemplate = await api.post<{ id: string }>('/v1/templates', { name: 'Own', image: 'own:1', readme: '# Own' });
  await api.post('/v1/templates', { name: 'Shared', image: 'shared:1', visibility: 'public' });
  await api.post('/v1/api-keys', { name: 'CI' });
  await api.post('/v1/ssh-keys', { name: 'laptop', public_key: makePublicKey('-t', 'ed25519') });
  await api.put('/v1/orgs/current/spend-caps', { burn_per_hour_micro: null, day_micro: 5_000_000, month_micro: null });
  for (const role of ['member', 'viewer']) {
    const guest = await control.renter(0);
    const { token } = await api.post<{ token: string }>('/v1/orgs/current/invites', { email: guest.email, role });
    await guest.api.post(`/v1/invites/${token}/accept`);
  }
  await api.post('/v1/orgs/current/invites', { email: 'guest@example.com' });
  const url = receiver.url();
  const { endpoint } = await api.post<{ endpoint: { id: string } }>('/v1/webhook-endpoints', { url });
  await api.post(`/v1/webhook-endpoints/${endpoint.id}/test`);
  await control.api.post('/v1/auth/sign-in', { email, password: 'a renter password' });
  control.advance(MINUTE_MS);
  await agent.speak(instances.running);
  control.advance(0);
  return { instances, ownTemplate: ownTemplate.id, endpoint: endpoint.id };
}
