import type { Locator } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../../scripts/eventually.js';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import { dialogTitles } from '../../harness/dialog-titles.js';
import { fillMarketplace, type FullMarketplace } from '../../harness/full-marketplace.js';
import { WebhookReceiver } from '../../harness/webhook-receiver.js';

/** Dialogs that no button of a page opens at once, each with the test that checks it. */
const CHECKED_ELSEWHERE: Readonly<Record<string, string>> = {
  'Confirm that the clock is right, and let time-outs go on': 'operator-control-plane.test.ts',
  'Copy the secret of the API key now': 'keys.test.ts',
  'Credit … with …, charged after the stop of …': 'operator-control-plane.test.ts',
  'Leave without saving the template': 'templates.test.ts',
  'Pass this link on to …': 'operator-organizations.test.ts',
  'The endpoint is on': 'webhooks.test.ts',
  'The new secret': 'webhooks.test.ts',
  '… is invited': 'team.test.ts',
};

let receiver: WebhookReceiver;
let test: TestConsole;
let world: FullMarketplace;
beforeAll(async () => {
  receiver = await WebhookReceiver.start();
  test = await TestConsole.start({ webhooks: receiver.reachable });
  world = await fillMarketplace(test, receiver);
});
afterAll(async () => {
  await test.stop();
  await receiver.stop();
});

/** What is put into the addresses that need something: pages without a parameter are there by themselves. */
function addressesOf(route: string): string[] {
  const { offer, template, ownTemplate, instances, endpoint, machines } = world;
  const known: Readonly<Record<string, string[]>> = {
    '/': [],
    '/deploy': [`/deploy?offer=${offer}&template=${template}`],
    '/instances/$id': Object.values(instances).map((id) => `/instances/${id}`),
    '/templates/$id': [template, ownTemplate].map((id) => `/templates/${id}`),
    '/templates/$id/edit': [`/templates/${ownTemplate}/edit`],
    '/webhooks/$id': [`/webhooks/${endpoint}`],
    '/operator/machines/$id': machines.map((id) => `/operator/machines/${id}`),
    '/operator/templates/$id': [`/operator/templates/${template}`],
    '/operator/organizations/$id': [world.renter, world.disputed, world.suspended].map(
      ({ organizationId }) => `/operator/organizations/${organizationId}`,
    ),
    '/operator/users': ['', ...[world.renter, world.operator].map(({ email }) => `?email=${email}`)].map(
      (search) => `/operator/users${search}`,
    ),
  };
  const addresses = known[route] ?? [route];
  if (addresses.some((address) => address.includes('$'))) throw new Error(`give an address of the page ${route}`);
  return addresses;
}

/** Goes through pages and what they open, and notes the titles of all dialogs. */
class Crawl {
  readonly titles = new Set<string>();
  private readonly openers = new Set<string>();

  constructor(private readonly window: ConsoleWindow) {}

  /** Goes to the addresses, and to what their tabs lead to. */
  async visit(addresses: readonly string[]): Promise<void> {
    const paths = new Set(addresses);
    for (const path of paths) {
      await this.goTo(path);
      await this.window.checkAccess();
      for (const tab of await this.window.page.locator('main nav a[aria-current]').all())
        paths.add((await tab.getAttribute('href')) ?? path);
      const boxes = this.window.page.getByLabel(/^Select all/);
      if ((await boxes.count()) > 0) await boxes.first().check();
      await this.openEach(this.window.page.locator('main [aria-haspopup]:not(:disabled)'), path);
    }
  }

  private async goTo(path: string): Promise<void> {
    await this.window.page.evaluate(`__TSR_ROUTER__.history.push(${JSON.stringify(path)})`);
    await this.rest(path);
  }

  /** Waits until the page is shown with everything that it reads. */
  private rest(path: string): Promise<unknown> {
    return eventually(`${path} to be read`, () =>
      this.window.page.evaluate<boolean>(`
        (({ state, options }) => state.status === 'idle' && options.context.queries.isFetching() === 0 &&
          !document.querySelector('[aria-label^=Loading]'))(__TSR_ROUTER__)
      `),
    );
  }

  /** Opens what each of these opens, once for each kind of it. */
  private async openEach(openers: Locator, path: string): Promise<void> {
    const words = await openers.allInnerTexts();
    for (const [index, word] of words.entries()) {
      const [route = ''] = path.replace(/[0-9a-f-]{36}/, '$id').split('?');
      if (this.openers.has(`${route} ${word}`)) continue;
      this.openers.add(`${route} ${word}`);
      await openers.nth(index).click();
      const popup = this.window.page.locator('[role=dialog], [role=alertdialog], [role=menu]');
      await popup.waitFor();
      await this.rest(path);
      this.titles.add((await popup.getByRole('heading').allInnerTexts())[0] ?? word);
      await this.window.checkAccess('[role=dialog], [role=alertdialog], [role=menu]');
      await this.window.page.keyboard.press('Escape');
      await popup.waitFor({ state: 'detached' });
    }
  }
}

it('keeps nobody out of any page or dialog, in either theme', { timeout: 120_000 }, async () => {
  const met = new Set<string>();
  const crawl = async (who: 'renter' | 'disputed' | 'operator', pick: (route: string) => boolean) => {
    const window = await test.open(world[who]);
    await window.goTo('/profile');
    const routes = await window.page.evaluate<string[]>('Object.keys(__TSR_ROUTER__.routesByPath)');
    const walk = new Crawl(window);
    await walk.visit(routes.filter(pick).flatMap(addressesOf));
    for (const title of walk.titles) met.add(title);
    await window.close();
  };
  await crawl('renter', (route) => !route.startsWith('/operator'));
  await crawl('operator', (route) => route.startsWith('/operator'));
  await crawl('disputed', (route) => route === '/team' || route === '/instances');
  const missed = dialogTitles().filter(({ pattern }) => ![...met].some((title) => pattern.test(title)));
  if (process.env['DBG']) console.log([...met].join('\n'));
  expect(missed.map(({ title }) => title).sort()).toEqual(Object.keys(CHECKED_ELSEWHERE).sort());
});
