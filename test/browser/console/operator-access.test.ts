import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestConsole } from '../../harness/console.js';
import { Crawl } from '../../harness/crawl.js';
import { dialogTitles } from '../../harness/dialog-titles.js';
import { fillMarketplace, operatorsAddresses, type FullMarketplace } from '../../harness/full-marketplace.js';
import { WebhookReceiver } from '../../harness/webhook-receiver.js';

/** Titles that no button of a page shows at once, each with the test that checks the dialog, or what it is. */
const CHECKED_ELSEWHERE: Readonly<Record<string, string>> = {
  'Confirm that the clock is right, and let time-outs go on': 'operator-control-plane.test.ts',
  'Credit … with …, charged after the stop of …': 'operator-control-plane.test.ts',
  'Credit … with …': 'Credit … with an amount in it',
  'Pass this link on to …': 'operator-organizations.test.ts',
  'Revoke this token: no host can enroll with it': 'Revoke this token, of one for any host',
  'Take … back from …': 'Credit … with another choice in it',
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

it('keeps no operator out of a page or dialog, in either theme', { timeout: 240_000 }, async () => {
  const window = await test.open(world.operator);
  await window.goTo('/operator');
  const titles = await new Crawl(window).visit(operatorsAddresses(world));
  await window.close();
  const missed = dialogTitles()
    .filter(({ file }) => file.includes('operator'))
    .filter(({ pattern }) => ![...titles].some((title) => pattern.test(title)));
  expect(missed.map(({ title }) => title).sort()).toEqual(Object.keys(CHECKED_ELSEWHERE).sort());
});
