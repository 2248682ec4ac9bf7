import { afterAll, beforeAll, expect, it } from 'vitest';
import { Crawl } from '../../harness/crawl.js';
import { missedTitles } from '../../harness/dialog-titles.js';
import { operatorsAddresses, startFullMarketplace } from '../../harness/full-marketplace.js';

/** Titles that no button of a page shows at once, each with the test that checks the dialog, or what it is. */
const CHECKED_ELSEWHERE: Readonly<Record<string, string>> = {
  'Assign … to …': 'checked by none yet: only a GPU of another machine leads to it',
  'Change the prices of …': 'operator-offers.test.ts',
  'Confirm that the clock is right, and let time-outs go on': 'operator-control-plane.test.ts',
  'Credit … with …, charged after the stop of …': 'operator-control-plane.test.ts',
  'Credit … with …': 'Credit … with an amount in it',
  'Pass this link on to …': 'operator-organizations.test.ts',
  'Revoke this token: no host can enroll with it': 'Revoke this token, of one for any host',
  'Take … back from …': 'Credit … with another choice in it',
};

let full: Awaited<ReturnType<typeof startFullMarketplace>>;
beforeAll(async () => {
  full = await startFullMarketplace();
});
afterAll(() => full.stop());

it('keeps no operator out of a page or dialog, in either theme', async () => {
  const { test, world } = full;
  const window = await test.open(world.operator);
  await window.goTo('/operator');
  const titles = await new Crawl(window).visit(operatorsAddresses(world));
  await window.close();
  expect(missedTitles(titles, (file) => file.includes('operator'))).toEqual(Object.keys(CHECKED_ELSEWHERE).sort());
});
