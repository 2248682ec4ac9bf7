import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../../scripts/eventually.js';
import type { InstanceBody } from '../../harness/api-client.js';
import { TestConsole } from '../../harness/console.js';
import { statusIs } from '../../harness/control-plane.js';
import type { FakeAgent } from '../../harness/fake-agent.js';

let test: TestConsole;
let agent: FakeAgent;
let offer_id: string;
let template_id: string;

beforeAll(async () => {
  test = await TestConsole.start();
  agent = await test.control.host({ gpus: 32 });
  offer_id = await test.control.offer(agent, 1, 10_000);
  template_id = await test.control.template({ name: 'vLLM', mode: ['ssh'] });
});
afterAll(() => test.stop());

const label = (number: number) => `instance ${number}`;

it('two people in one organization see each other’s acts as they happen; each organization has its own page', async () => {
  const [ann, bob] = [await test.control.renter(), await test.control.renter()];
  const { token } = await ann.api.post<{ token: string }>('/v1/orgs/current/invites', {
    email: bob.email,
    role: 'member',
  });
  await bob.api.post(`/v1/invites/${token}/accept`);
  expect((await ann.api.request('PATCH', '/v1/orgs/current', { name: 'Acme' })).status).toBe(200);
  const [hers, his] = [await test.open(ann), await test.open(bob)];
  await hers.goTo('/instances');
  await his.goTo('/instances');
  await his.page.click('header button');
  await his.page.click('[role=menuitemradio] >> text=Acme');
  await his.page.waitForSelector('header button:has-text("Acme")');
  const { id } = await ann.api.post<InstanceBody>('/v1/instances', {
    offer_id,
    template_id,
    disk_gb: 10,
    label: 'hers',
  });
  await statusIs(ann.api, id, 'running');
  for (const { page } of [hers, his]) await page.waitForSelector('h2:text-is("Running")');
  await his.page.click('text=Stop');
  await his.page.getByRole('alertdialog').getByRole('button', { name: 'Stop' }).click();
  await hers.page.waitForSelector('h2:text-is("Stopped")');
  await hers.close();
  await his.close();
});

it('shows 25 instances, none of which a phone has to be scrolled sideways for', async () => {
  const renter = await test.control.renter();
  for (let number = 1; number <= 25; number++) {
    const body = { offer_id, template_id, disk_gb: 10, label: label(number) };
    await renter.api.post<InstanceBody>('/v1/instances', body);
  }
  const window = await test.open(renter, { width: 360 });
  await window.goTo('/instances');
  await window.page.waitForSelector('main li >> nth=24');
  expect(await window.page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
  await window.shoot('instances-25');
  await window.checkAccess();
  await window.close();
});

it('a session that was ended elsewhere leads to the sign-in, without a click', async () => {
  const renter = await test.control.renter();
  const window = await test.open(renter);
  window.expectComplaints(/401|ERR_/);
  await window.goTo('/instances');
  await renter.api.post('/v1/auth/sign-out');
  await window.reachSignIn('/instances');
  await window.close();
});

it('shows an error of the API with its request, and goes on once that works again', async () => {
  const window = await test.open(await test.control.renter());
  window.expectComplaints(/500/);
  await window.page.route('**/v1/offers?**', (route) =>
    route.fulfill({
      status: 500,
      contentType: 'application/json',
      body: JSON.stringify({ code: 'INTERNAL', message: 'something went wrong', request_id: 'request-1' }),
    }),
  );
  await window.page.goto('/market');
  await window.page.waitForSelector('[role=alert] >> text=something went wrong');
  await window.page.waitForSelector('text=request-1');
  await window.checkAccess();
  await window.page.unroute('**/v1/offers?**');
  await window.page.click('text=Try again');
  await window.page.waitForSelector('text=Fake GPU');
  await window.close();
});

it('draws what an instance has used, and has it as a table', async () => {
  const renter = await test.control.renter();
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', { offer_id, template_id, disk_gb: 10 });
  await statusIs(renter.api, id, 'running');
  agent.points = [20_000, 10_000].map((endedMsAgo) => ({
    endedMsAgo,
    cpuMillis: 2500,
    memoryUsedBytes: 2 ** 30,
    networkInBytes: 10240,
    gpus: [{ usePercent: 87 }],
  }));
  const window = await test.open(renter, { timezoneId: 'America/New_York' });
  const drawn = await window.canvasWords();
  await window.goTo(`/instances/${id}?tab=usage`);
  const times = await drawn(/^\S*:\d\d/);
  expect(times.filter((each) => !/^[0-2]\d:[0-5]\d(:[0-5]\d)? at /.test(each))).toEqual([]);
  await window.page.click('text=GPU use as a table');
  await window.page.waitForSelector('td:text-is("87 %") >> nth=1');
  await window.page.click('text=Network, mean of 10 s as a table');
  await window.page.waitForSelector('td:text-is("1.0 KiB/s") >> nth=1');
  await window.shoot('instance-usage');
  await window.checkAccess();
  await window.close();
});

/** The colours of the lines of a chart as its legend has them, with their contrast to what is behind them; it runs in the browser. */
const LINES = `(() => {
  const context = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const lightOf = (colour) => {
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    const [red, green, blue] = [...context.getImageData(0, 0, 1, 1).data].map((part) =>
      part <= 10 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
  };
  const chart = [...document.querySelectorAll('figure')].find(({ textContent }) => textContent.startsWith('GPU use'));
  const behind = lightOf(getComputedStyle(chart).backgroundColor);
  // The first one is the time.
  return [...chart.querySelectorAll('.u-series .u-marker')].slice(1).map((marker) => {
    const colour = getComputedStyle(marker).borderTopColor;
    return { colour, contrast: Math.max(lightOf(colour), behind) / Math.min(lightOf(colour), behind) };
  });
})()`;

it('draws each of eight GPUs in a colour of its own, which is seen in either theme', async () => {
  const renter = await test.control.renter();
  const large = await test.control.host({ gpus: 8 });
  const body = { offer_id: await test.control.offer(large, 8, 10_000), template_id, disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  large.points = [20_000, 10_000].map((endedMsAgo) => ({
    endedMsAgo,
    cpuMillis: 2500,
    memoryUsedBytes: 2 ** 30,
    networkInBytes: 10240,
    gpus: Array.from({ length: 8 }, (_, index) => ({ usePercent: index * 10 + 1 })),
  }));
  const window = await test.open(renter);
  const { page } = window;
  await window.goTo(`/instances/${id}?tab=usage`);
  await page.waitForSelector('text=GPU use as a table');
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await eventually(`eight colours in the ${colorScheme} theme`, async () => {
      const lines = await page.evaluate<{ colour: string; contrast: number }[]>(LINES);
      const isSeen = lines.every(({ contrast }) => contrast >= 3);
      return isSeen && lines.length === 8 && new Set(lines.map(({ colour }) => colour)).size === 8;
    });
  }
  await window.shoot('instance-usage-eight');
  await window.close();
});

it('seven tabs of one browser share one stream of events, which another follows once the first is closed', async () => {
  const renter = await test.control.renter(5_000_000);
  const window = await test.open(renter);
  let opened = 0;
  window.context.on('request', (request) => {
    if (request.headers()['accept'] === 'text/event-stream') opened += 1;
  });
  const streams = async () => {
    const text = await (await fetch(`${test.control.url}/metrics`)).text();
    return Number(/^gpurent_event_streams (\d+)$/m.exec(text)?.[1]);
  };
  await window.goTo('/instances');
  const tabs = [window.page];
  while (tabs.length < 7) {
    const tab = await window.context.newPage();
    await tab.goto('/instances');
    await tab.waitForSelector('[data-connection=live]', { state: 'attached' });
    tabs.push(tab);
  }
  expect(await streams()).toBe(1);
  const credits = `/v1/operator/organizations/${renter.organizationId}/credits`;
  const shownIn = (pages: Page[], text: string) =>
    Promise.all(pages.map((tab) => tab.waitForSelector(`header >> text=${text}`)));
  await test.control.operator.post(credits, { amount_micro: 1_000_000, reason: 'more' });
  await shownIn(tabs, '$6.00');
  const before = opened;
  await window.page.close();
  await eventually('another tab to follow', async () => opened > before && (await streams()) === 1);
  await test.control.operator.post(credits, { amount_micro: 1_000_000, reason: 'more' });
  await shownIn(tabs.slice(1), '$7.00');
  await window.close();
});

it('takes over from a tab that the browser has put to sleep', async () => {
  const renter = await test.control.renter(5_000_000);
  const window = await test.open(renter);
  await window.goTo('/instances');
  await window.page.evaluate('BroadcastChannel.prototype.postMessage = () => undefined');
  const tab = await window.context.newPage();
  await tab.clock.install();
  await tab.goto('/instances');
  await tab.waitForSelector('header >> text=$5.00');
  await tab.clock.runFor(60_000);
  await tab.waitForSelector('[data-connection=live]', { state: 'attached' });
  await window.close();
});

it('a tab that hears late of the events that another one follows reads only what they concern', async () => {
  const renter = await test.control.renter(5_000_000);
  const window = await test.open(renter);
  await window.goTo('/instances');
  await window.page.evaluate(`{
    const { prototype } = BroadcastChannel;
    const post = prototype.postMessage;
    prototype.postMessage = () => undefined;
    window.speakAgain = () => (prototype.postMessage = post);
  }`);
  const tab = await window.context.newPage();
  const reads: string[] = [];
  tab.on('request', (request) => reads.push(request.url()));
  await tab.clock.install();
  await tab.goto('/instances');
  await tab.waitForSelector('header >> text=$5.00');
  const credits = `/v1/operator/organizations/${renter.organizationId}/credits`;
  await test.control.operator.post(credits, { amount_micro: 1_000_000, reason: 'more' });
  await window.page.waitForSelector('header >> text=$6.00');
  await window.page.evaluate('speakAgain()');
  await tab.clock.runFor(15_000);
  await tab.waitForSelector('[data-connection=live]', { state: 'attached' });
  await tab.clock.runFor(1_000);
  await tab.waitForSelector('header >> text=$6.00');
  expect(reads.filter((url) => url.endsWith('/v1/instances')).length).toBe(1);
  await window.close();
});

it('says why no events arrive, reads everything again meanwhile, and goes on trying', async () => {
  const renter = await test.control.renter(5_000_000);
  const window = await test.open(renter);
  const { page } = window;
  await page.clock.install();
  window.expectComplaints(/409/);
  const refusal = { code: 'STREAM_LIMIT_REACHED', message: '10 streams are open', request_id: 'request-1', limit: 10 };
  await page.route('**/v1/events', (route) =>
    route.fulfill({ status: 409, contentType: 'application/json', body: JSON.stringify(refusal) }),
  );
  await page.goto('/team');
  await page.getByText('10 streams are open').waitFor();
  await window.shoot('not-live');
  await window.checkAccess();
  const renamed = (name: string) => page.locator(`header button:has-text("${name}")`).waitFor();
  expect((await renter.api.request('PATCH', '/v1/orgs/current', { name: 'First' })).status).toBe(200);
  await page.getByRole('button', { name: 'Read again now' }).click();
  await renamed('First');
  expect((await renter.api.request('PATCH', '/v1/orgs/current', { name: 'Second' })).status).toBe(200);
  await page.clock.runFor(30_000);
  await renamed('Second');
  await page.unroute('**/v1/events');
  await page.clock.runFor(30_000);
  await page.waitForSelector('[data-connection=live]', { state: 'attached' });
  await page.getByText('10 streams are open').waitFor({ state: 'detached' });
  await window.close();
});

it('follows events once a role allows it, and notices an end of the session also without events', async () => {
  const [owner, member] = [await test.control.renter(), await test.control.renter(0)];
  const invite = { email: member.email, role: 'billing' };
  const { token } = await owner.api.post<{ token: string }>('/v1/orgs/current/invites', invite);
  await member.api.post(`/v1/invites/${token}/accept`);
  const window = await test.openFor(member, owner.organizationId);
  const { page } = window;
  await page.clock.install();
  window.expectComplaints(/401|403|ERR_/);
  const become = async (role: string) => {
    const path = `/v1/orgs/current/members/${member.userId}`;
    expect((await owner.api.request('PATCH', path, { role })).status).toBe(200);
  };
  await page.goto('/team');
  await page.waitForSelector('[data-connection=off]', { state: 'attached' });
  await become('viewer');
  await page.clock.runFor(30_000);
  await page.waitForSelector('[data-connection=live]', { state: 'attached' });
  await become('billing');
  await page.waitForSelector('[data-connection=off]', { state: 'attached' });
  await member.api.post('/v1/auth/sign-out');
  await page.clock.runFor(30_000);
  await window.reachSignIn('/team');
  await window.close();
});
