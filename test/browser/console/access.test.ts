import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestConsole } from '../../harness/console.js';
import { Crawl } from '../../harness/crawl.js';
import { dialogTitles } from '../../harness/dialog-titles.js';
import { fillMarketplace, rentersAddresses, type FullMarketplace } from '../../harness/full-marketplace.js';
import type { Renter } from '../../harness/control-plane.js';
import { WebhookReceiver } from '../../harness/webhook-receiver.js';

/** Dialogs that no button of a page opens at once, each with the test that checks it. */
const CHECKED_ELSEWHERE: Readonly<Record<string, string>> = {
  'Copy the secret of the API key now': 'keys.test.ts',
  'Leave without saving the template': 'templates.test.ts',
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

it('keeps no renter out of a page or dialog, in either theme', { timeout: 240_000 }, async () => {
  const titles = new Set<string>();
  const crawl = async (who: Renter, addresses: readonly string[]) => {
    const window = await test.open(who);
    await window.goTo('/profile');
    for (const title of await new Crawl(window).visit(addresses)) titles.add(title);
    await window.close();
  };
  await crawl(world.renter, rentersAddresses(world));
  await crawl(world.disputed, ['/team', '/instances']);
  const missed = dialogTitles()
    .filter(({ file }) => !file.includes('operator'))
    .filter(({ pattern }) => ![...titles].some((title) => pattern.test(title)));
  expect(missed.map(({ title }) => title).sort()).toEqual(Object.keys(CHECKED_ELSEWHERE).sort());
});
