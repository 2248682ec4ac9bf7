import { afterAll, beforeAll, expect, it } from 'vitest';
import { query, sql } from '../../../control-plane/store/sql.js';
import type { InstanceBody } from '../../harness/api-client.js';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import { statusIs, type Renter } from '../../harness/control-plane.js';
import type { FakeAgent } from '../../harness/fake-agent.js';
import { WebhookReceiver } from '../../harness/webhook-receiver.js';

const WIDTH = 360;
/** A word that no line has room for and HTML; in a text also what nobody sees, and an override of its direction. */
const word = (chars: number) => `"><img/src=x>${'W'.repeat(chars - 13)}`;
const UNSEEN = '\u200b';
const sentence = `${word(400)}${UNSEEN} \u202eevil\u2066 \u001b[2J <script>alert(1)</script> ${'\u0301'.repeat(200)}`;

let receiver: WebhookReceiver;
let test: TestConsole;
let renter: Renter;
let agent: FakeAgent;
let paths: Record<'renter' | 'operator', string[]>;

beforeAll(async () => {
  receiver = await WebhookReceiver.start();
  test = await TestConsole.start({ webhooks: receiver.reachable });
  renter = await test.control.renter();
  paths = await spoil();
});
afterAll(async () => {
  await test.stop();
  await receiver.stop();
});

/** Fills everything that people and hosts write with what is hostile. Returns the pages that show it. */
async function spoil() {
  const { control } = test;
  const { api, organizationId } = renter;
  await api.request('PATCH', '/v1/orgs/current', { name: word(64) });
  agent = await control.host({ name: word(64), gpus: 8, cudaVersion: word(32) });
  agent.inventory['region'] = word(64);
  for (const gpu of agent.inventory['gpus'] as { model: string; healthy: boolean; reason: string }[])
    gpu.model = word(128);
  Object.assign((agent.inventory['gpus'] as object[])[7] ?? {}, { healthy: false, reason: sentence.slice(0, 512) });
  await agent.connect();
  const offer = await control.offer(agent, 1);
  const template = await api.post<{ id: string }>('/v1/templates', {
    name: word(64),
    description: word(900),
    readme: `# ${word(500)}\n\n[x](javascript:alert(1)) ${sentence}\n\n\`${word(300)}\``,
    image: `registry.example/${'w'.repeat(200)}:1`,
    onstart: sentence,
    command: [word(500)],
    env: [
      {
        key: word(200).replaceAll('=', '-'),
        value: `its own ${sentence}`,
      },
    ],
    ports: [
      {
        port: 80,
        label: word(64),
        open_button: true,
      },
    ],
  });
  await api.post('/v1/api-keys', { name: word(64) });
  const body = { offer_id: offer, template_id: template.id, disk_gb: 10, label: word(64) };
  const { id } = await api.post<InstanceBody>('/v1/instances', body);
  const failing = await api.post<InstanceBody>('/v1/instances', body);
  for (const instance of [id, failing.id]) await statusIs(api, instance, 'running');
  agent.print(id, sentence, word(3_000));
  agent.say({ progress: { instanceId: id, kind: word(60), message: sentence } });
  agent.exit(failing.id, { code: 1, lastLines: [sentence, word(2_000)] });
  await statusIs(api, failing.id, 'error');
  receiver.answer = (response) => void response.writeHead(500).end(sentence);
  const hook = await api.post<{ endpoint: { id: string } }>('/v1/webhook-endpoints', {
    url: `${receiver.url()}?${'w'.repeat(800)}`,
    description: word(200),
  });
  await api.post(`/v1/webhook-endpoints/${hook.endpoint.id}/test`);
  await api.post('/v1/orgs/current/invites', { email: `${'w'.repeat(64)}@${'w'.repeat(60)}.example`, role: 'member' });
  await control.operator.post(`/v1/operator/organizations/${organizationId}/credits`, {
    amount_micro: 1,
    reason: word(256),
  });
  // Earlier releases took names of which nobody sees all.
  control.core.platform.store.transact((tx) => {
    const unseen = (name: string) => sql<string>`${sql.ref(name)} || ${UNSEEN}`;
    tx.run(
      query
        .updateTable('organizations')
        .set({ name: unseen('name') })
        .where('id', '=', organizationId),
    );
    tx.run(query.updateTable('machines').set({ name: unseen('name'), region: unseen('region') }));
    tx.run(query.updateTable('gpus').set({ model: unseen('model') }));
    tx.run(query.updateTable('templates').set({ name: unseen('name') }));
    tx.run(query.updateTable('api_keys').set({ name: unseen('name') }));
    tx.run(query.updateTable('instances').set({ label: unseen('label') }));
  });
  return {
    renter: [
      '/market',
      `/market?gpu=${encodeURIComponent(word(128))}`,
      `/deploy?offer=${offer}&template=${template.id}`,
      '/instances',
      ...['timeline', 'logs', 'usage', 'cost', 'settings'].map((tab) => `/instances/${id}?tab=${tab}`),
      `/instances/${failing.id}`,
      '/templates',
      `/templates/${template.id}`,
      `/templates/${template.id}/edit`,
      '/billing',
      '/billing?tab=spend&by=label',
      '/billing?tab=transactions',
      '/keys',
      '/team',
      '/team/audit',
      '/webhooks',
      `/webhooks/${hook.endpoint.id}`,
      '/profile',
    ],
    operator: [
      '/operator',
      '/operator/machines',
      `/operator/machines/${agent.hostId}`,
      '/operator/offers',
      '/operator/offers/prices',
      '/operator/templates',
      '/operator/users',
      '/operator/organizations',
      ...['members', 'instances', 'ledger', 'keys', 'templates', 'machines'].map(
        (tab) => `/operator/organizations/${organizationId}?tab=${tab}`,
      ),
      '/operator/quarantine',
      '/operator/ignored-stops',
      '/operator/control-plane',
      '/operator/audit',
    ],
  };
}

interface Findings {
  wide: string[];
  links: string[];
  hidden: string[];
}

/** What sticks out of the page, links that run something, and texts with hidden characters. */
const FINDINGS = `(() => {
  const clips = (element) => element && (/(auto|scroll|hidden|clip)/.test(getComputedStyle(element).overflowX) || clips(element.parentElement));
  const wide = [...document.querySelectorAll('body *')]
    .filter((element) => element.getBoundingClientRect().right > innerWidth + 1 && element.children.length === 0 && !clips(element.parentElement))
    .map((element) => element.tagName + '.' + element.className + ': ' + element.textContent.slice(0, 40));
  const links = [...document.querySelectorAll('[href]')].map((link) => link.href).filter((href) => !/^(https?|data|vscode):/.test(href));
  const hidden = [document.title, ...document.body.innerText.split('\\n'), ...[...document.querySelectorAll('[title], [aria-label]')].flatMap(({ title, ariaLabel }) => [title, ariaLabel ?? ''])]
    .filter((text) => /(?!\\t)[\\p{Cc}\\p{Cf}]/u.test(text)).map((text) => encodeURI(text).slice(0, 100));
  return { hidden, wide: document.documentElement.scrollWidth > innerWidth ? wide.slice(0, 5).concat('scrollWidth ' + document.documentElement.scrollWidth) : [], links };
})()`;

async function look(window: ConsoleWindow, path: string): Promise<void> {
  await window.goTo(path);
  await window.page.waitForSelector('main [aria-label=Loading]', { state: 'detached' });
  for (const summary of await window.page.locator('main summary').all()) await summary.click();
  const found = await window.page.evaluate<Findings>(FINDINGS);
  expect({ path, ...found }).toEqual({ path, wide: [], links: [], hidden: [] });
  expect({ path, failed: await window.page.locator('main >> text=This page has failed').count() }).toEqual({
    path,
    failed: 0,
  });
}

it.each(['renter', 'operator'] as const)('nothing that strangers write runs or breaks a page: %s', async (who) => {
  const { control } = test;
  const person = who === 'renter' ? renter : await control.renter(0);
  if (who === 'operator') control.makeOperator(person.userId);
  const window = await test.open(person, { width: WIDTH, height: 740 });
  for (const path of paths[who]) await look(window, path);
  await window.close();
});

it.each([
  ['gpurent.organization', '\u2603 garbage\n'],
  ['gpurent.organization', 'x'.repeat(100_000)],
  ['gpurent.ssh-key', '{"'],
])('a page works with garbage in the local storage: %s', async (key, value) => {
  const window = await test.open(renter);
  await window.runBeforePages(`localStorage.setItem(${JSON.stringify(key)}, ${JSON.stringify(value)})`);
  await window.page.goto(paths.renter[2] ?? '');
  await window.page.waitForSelector('[data-connection=live]', { state: 'attached' });
  await window.page.waitForSelector('main h1:has-text("Deploy")');
  await window.close();
});

it('an address can have anything behind it', async () => {
  const window = await test.open(renter);
  window.expectComplaints(/40[04]|422/);
  const junk = encodeURIComponent('["<script>",{"__proto__":1}]');
  for (const path of [
    '/market?count=1e999&sort=__proto__&gpu=%00',
    `/billing?tab=${junk}&by=constructor&from=0000-99-99&cursor=${junk}`,
    `/billing?tab=spend&from=9999-99-99&to=0000-00-00`,
    '/billing?tab=transactions&cursor=%22',
    '/instances/..%2f..?tab=logs',
    '/instances/%2e%2e',
    `/instances/${junk}`,
    '/templates?words[]=1&tab=toString',
    '/team/audit?by=__proto__&action=valueOf',
    `/keys?caps=${junk}`,
    '/webhooks/x?state=__proto__',
    `/deploy?offer=${junk}`,
    '/operator/machines/x',
    '/webhooks/%F0%9F%98%80',
  ]) {
    await window.page.goto(path);
    await window.page.waitForSelector('main :is(h1, [role=alert])');
    await window.page.waitForSelector('main [aria-label=Loading]', { state: 'detached' });
    expect({ path, failed: await window.page.locator('main >> text=This page has failed').count() }).toEqual({
      path,
      failed: 0,
    });
  }
  await window.close();
});
