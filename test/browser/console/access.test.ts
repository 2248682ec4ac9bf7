import { afterAll, beforeAll, expect, it } from 'vitest';
import { Crawl } from '../../harness/crawl.js';
import { missedTitles } from '../../harness/dialog-titles.js';
import { rentersAddresses, startFullMarketplace } from '../../harness/full-marketplace.js';
import type { Renter } from '../../harness/control-plane.js';

/** Dialogs that no button of a page opens at once, each with the test that checks it. */
const CHECKED_ELSEWHERE: Readonly<Record<string, string>> = {
  'Copy the secret of the API key now': 'keys.test.ts',
  'Leave without saving the …': 'templates.test.ts, instance-leave.test.ts',
  'Save the limits and stop …': 'billing.test.ts',
  'Set the caps and stop …': 'billing.test.ts',
  'The endpoint is on': 'webhooks.test.ts',
  'The new secret': 'webhooks.test.ts',
  '… is invited': 'team.test.ts',
};

let full: Awaited<ReturnType<typeof startFullMarketplace>>;
beforeAll(async () => {
  full = await startFullMarketplace();
});
afterAll(() => full.stop());

it('keeps no renter out of a page or dialog, in either theme', async () => {
  const { test, world } = full;
  const titles = new Set<string>();
  const crawl = async (who: Renter, addresses: readonly string[]) => {
    const window = await test.open(who);
    await window.goTo('/profile');
    for (const title of await new Crawl(window).visit(addresses)) titles.add(title);
    await window.close();
  };
  await crawl(world.renter, rentersAddresses(world));
  await crawl(world.disputed, ['/team', '/instances']);
  expect(missedTitles(titles, (file) => !file.includes('operator'))).toEqual(Object.keys(CHECKED_ELSEWHERE).sort());
});
