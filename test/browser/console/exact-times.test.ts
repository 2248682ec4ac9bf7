import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../../scripts/eventually.js';
import type { InstanceBody } from '../../harness/api-client.js';
import { TestConsole } from '../../harness/console.js';
import { statusIs, type Renter } from '../../harness/control-plane.js';

const EXACT = /^2\d{3}-\d\d-\d\d \d\d:\d\d:\d\d (GMT|UTC)[-+]?\d*$/;

let test: TestConsole;
let renter: Renter;
beforeAll(async () => {
  test = await TestConsole.start();
  renter = await test.control.renter();
});
afterAll(() => test.stop());

it('shows exact times to those who choose them by the keyboard, and remembers that', async () => {
  const agent = await test.control.host();
  const body = { offer_id: await test.control.offer(agent), template_id: await test.control.template(), disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  const window = await test.open(renter, { width: 360, timezoneId: 'Asia/Tokyo' });
  const { page } = window;
  const times = () => page.locator('time').allTextContents();
  const areExact = async () => {
    const shown = await times();
    return shown.length > 2 && shown.every((time) => EXACT.test(time)) && shown;
  };
  await window.goTo(`/instances/${id}`);
  await page.locator('main time').first().waitFor();
  expect((await times()).some((time) => EXACT.test(time))).toBe(false);
  const choose = async (words: string) => {
    await page.locator('header button[aria-haspopup=menu]').press('Enter');
    const item = page.getByRole('menuitem', { name: words });
    await item.focus();
    await item.press('Enter');
  };
  await choose('Show exact times');
  const shown = await eventually('exact times', areExact);
  expect(shown.every((time) => time.endsWith('GMT+9'))).toBe(true);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
  await window.checkAccess();
  await page.reload();
  await eventually('exact times after a reload', areExact);
  await choose('Show times as people say them');
  await eventually('times as people say them', async () => !(await times()).some((time) => EXACT.test(time)));
  await window.close();
});
