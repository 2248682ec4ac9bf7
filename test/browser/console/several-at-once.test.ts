import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../../scripts/eventually.js';
import type { InstanceBody } from '../../harness/api-client.js';
import { TestConsole } from '../../harness/console.js';
import { statusIs } from '../../harness/control-plane.js';

const AT_ONCE = 4;
const COUNT = 7;

let test: TestConsole;
beforeAll(async () => {
  test = await TestConsole.start();
});
afterAll(() => test.stop());

it('acts on four instances at once, then on the next, and names the one of which no answer came', async () => {
  const renter = await test.control.renter();
  const offer_id = await test.control.offer(await test.control.host({ gpus: COUNT }));
  const template_id = await test.control.template();
  const made: InstanceBody[] = [];
  for (let index = 1; index <= COUNT; index++)
    made.push(await renter.api.post('/v1/instances', { offer_id, template_id, disk_gb: 10, label: `job-${index}` }));
  for (const { id } of made) await statusIs(renter.api, id, 'running');
  const window = await test.open(renter);
  const { page } = window;
  window.expectComplaints(/Failed to load resource/);
  let [open, most, lost] = [0, 0, false];
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  await page.route('**/v1/instances/*/stop', async (route) => {
    most = Math.max(most, ++open);
    await released;
    const response = await route.fetch();
    open -= 1;
    if (
      !route
        .request()
        .url()
        .includes(made[5]?.id ?? '')
    )
      return route.fulfill({ response });
    lost = true;
    return route.abort('connectionreset');
  });
  await window.goTo('/instances');
  await page.getByLabel(`Select all ${COUNT} shown`).check();
  await page.getByRole('button', { name: `Stop ${COUNT}` }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Stop' }).click();
  await page.getByText(`Stop: 0 of ${COUNT} accepted, ${COUNT} to come`).waitFor();
  await eventually('the first requests', () => open >= AT_ONCE);
  release();
  await page.getByText(`Stop: ${COUNT - 1} of ${COUNT} accepted, 1 without an answer`).waitFor();
  await page.getByRole('listitem').filter({ hasText: 'was not reached' }).getByText('job-6').waitFor();
  expect([most, lost]).toEqual([AT_ONCE, true]);
  for (const { id } of made) await statusIs(renter.api, id, 'stopped');
  await window.close();
});
