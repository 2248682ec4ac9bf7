import BetterSqlite3 from 'better-sqlite3';
import { randomUUID } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Journal } from '../../agent/journal/journal.js';
import { eventually } from '../../scripts/eventually.js';
import { CommandOutcome, CommandResult } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { TestControlPlane, statusIs, type Renter } from './control-plane.js';
import type { FakeAgent } from './fake-agent.js';
import { StripeDouble } from './stripe-double.js';

/**
 * Writes what this release leaves behind into test/fixtures/release-VERSION: a store with instances in every state, its hosts,
 * the OpenAPI document and an agent's journal; and the wire protocol. test/api/upgrade.test.ts plays it with every later release.
 */
const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
const folder = `test/fixtures/release-${version}`;
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });

const stripe = await StripeDouble.start();
const test = await TestControlPlane.start({ stripe: stripe.settings });
const renter = await test.renter();
const host = await test.host({ gpus: 8, vmCapable: true });
const slow = await test.host({ gpus: 2 });
const templates = await makeTemplates(renter);
const offers = { offerId: await test.offer(host), slowOffer: await test.offer(slow) };
const instances = await makeInstances(renter, host);
await pay(renter);
const apiKey = await renter.api.post<object>('/v1/api-keys', { name: 'ci', kind: 'team' });
await renter.api.post('/v1/orgs/current/invites', { email: 'invited@example.com', role: 'member' });
const world = {
  now: test.clock.now(),
  secretKey: test.secretKey.toString('hex'),
  renter: { email: renter.email, password: 'a renter password' },
  apiKey,
  hosts: [host.state, slow.state],
  instances,
  templates,
  offers,
};
writeFileSync(`${folder}/world.json`, JSON.stringify(world, null, 1));
writeFileSync(`${folder}/openapi.json`, JSON.stringify(JSON.parse(readFileSync('docs/openapi.json', 'utf8'))));
await test.core.stop();
copyFileSync(test.databaseFile, `${folder}/store.db`);
forgetBoot(`${folder}/store.db`);
test.cleanUp();
await stripe.stop();
writeJournal(`${folder}/journal.db`);

/** Lets the store be of another boot than any machine that plays it: their monotonic clocks have nothing in common. */
function forgetBoot(file: string): void {
  const database = new BetterSqlite3(file);
  database.prepare("DELETE FROM meta WHERE key = 'clock_base'").run();
  // Whoever reads it leaves no file beside it.
  database.pragma('journal_mode = DELETE');
  database.close();
}

async function makeTemplates({ api }: Renter) {
  const { id: own } = await api.post<{ id: string }>('/v1/templates', {
    name: 'Own',
    image: 'registry.example.com/own/app:1',
    mode: ['ssh', 'jupyter'],
    env: [
      { key: 'PLAIN', value: 'plain' },
      { key: 'SECRET', value: 'a secret value', secret: true },
    ],
    ports: [{ port: 7860, label: 'web' }],
    registry: { username: 'u', password: 'p' },
  });
  const system = await test.template({ name: 'Shell', image: 'test:1' });
  return { system, own, vm: await test.template({ name: 'Machine', kind: 'vm' }) };
}

/** One instance in each state, on one host; `strange` is a workload that the control plane does not know. */
async function makeInstances({ api }: Renter, agent: FakeAgent) {
  const deploy = async (template_id: string, label: string | null) => {
    const request = { offer_id: offers.offerId, template_id, disk_gb: 10, label };
    return (await api.post<{ id: string }>('/v1/instances', request)).id;
  };
  const running = async (...request: Parameters<typeof deploy>) => {
    const id = await deploy(...request);
    await statusIs(api, id, 'running');
    return id;
  };
  const made = {
    running: await running(templates.own, 'one'),
    machine: await running(templates.vm, 'one'),
    plain: await running(templates.system, null),
    stopped: await running(templates.own, 'one'),
    destroyed: await running(templates.own, 'one'),
  };
  test.advance(60 * 60_000);
  agent.beat();
  await api.post(`/v1/instances/${made.stopped}/stop`);
  await statusIs(api, made.stopped, 'stopped');
  await api.delete(`/v1/instances/${made.destroyed}`);
  await statusIs(api, made.destroyed, 'destroyed');
  const strange = await makeStrange(agent);
  agent.automatic = false;
  const failed = await deploy(templates.own, 'one');
  agent.fail(await eventually('the command', () => agent.held[0]), 'IMAGE_NOT_FOUND', 'there is no such image');
  await statusIs(api, failed, 'error');
  return { ...made, failed, creating: await deploy(templates.own, 'one'), strange };
}

/** A workload that the control plane has never heard of. */
async function makeStrange(agent: FakeAgent): Promise<string> {
  const id = randomUUID();
  const gpuUuid = (agent.inventory['gpus'] as { uuid: string }[]).at(-1)?.uuid ?? '';
  agent.workloads.set(id, { state: 'WORKLOAD_STATE_RUNNING', sequence: 1, sshPort: 1, gpuUuids: [gpuUuid], lines: [] });
  agent.disconnect();
  await agent.connect();
  return id;
}

async function pay({ organizationId }: Renter): Promise<void> {
  const tell = async (type: string, object: object) => {
    const { payload, signature } = stripe.event(type, object, test.clock.now());
    await fetch(`${test.url}/v1/webhooks/stripe`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Stripe-Signature': signature },
      body: payload,
    });
  };
  const metadata = { gpurent_organization_id: organizationId };
  const paid = { payment_intent: 'pi_1', metadata, payment_status: 'paid', currency: 'usd', amount_total: 2_000 };
  await tell('checkout.session.completed', { id: 'cs_1', ...paid });
  await tell('refund.created', { id: 're_1', payment_intent: 'pi_1', amount: 500, currency: 'usd', status: 'pending' });
}

/** A finished command, one whose answer is on its way, one that was cut short, and a report. */
function writeJournal(file: string): void {
  const journal = new Journal(file);
  journal.setMeta('boot_id', 'a-boot');
  journal.setMeta('epoch', '[1, "i"]');
  const command = (commandId: string, instanceId: string, sequence: number) => ({ commandId, instanceId, sequence });
  const done = (begun: ReturnType<typeof command>) =>
    CommandResult.fromPartial({ ...begun, outcome: CommandOutcome.COMMAND_OUTCOME_DONE });
  const begin = (begun: ReturnType<typeof command>, desired: 'running' | 'stopped' | 'ended') => {
    journal.begin(begun, desired);
    return begun;
  };
  journal.finish(done(begin(command('finished', 'a', 1), 'running')));
  journal.acknowledge('finished');
  journal.report({ instanceId: 'a', note: 'ended', observation: undefined }, 1_767_225_700_000, 'ended');
  journal.finish(done(begin(command('unacknowledged', 'b', 3), 'stopped')));
  begin(command('cut-short', 'c', 2), 'running');
  journal.noteRun('cut-short', 1_767_225_600_000);
  journal.close();
}
