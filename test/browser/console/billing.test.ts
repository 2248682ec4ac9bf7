import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { components } from '../../../client/api/index.js';
import { exactMoney, parseMoney } from '../../../console/src/data/values/money.js';
import { eventually } from '../../../scripts/eventually.js';
import { statusIs } from '../../harness/control-plane.js';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import { GPU_MICRO, HOUR_MS, makePoor, type Poor } from '../../harness/poor.js';

type ChargeSum = components['schemas']['ChargeSum'];
type SpendCaps = components['schemas']['SpendCaps'];

let test: TestConsole;
let poor: Poor;
beforeAll(async () => {
  test = await TestConsole.start();
  poor = await makePoor(test.control, await test.control.template({ name: 'Spender' }));
  await poor.credit(10 * GPU_MICRO + 7);
  // No round amounts.
  await poor.pass(HOUR_MS + 1_234_567);
});
afterAll(() => test.stop());

/** The element `data` of HTML: an amount in micro-dollars, and its words. */
interface Data {
  value: string;
  textContent: string;
}

/** The amounts below an element, in micro-dollars, after each was held against its words. */
async function amountsIn(window: ConsoleWindow, selector: string): Promise<number[]> {
  const shown = await window.page
    .locator(`${selector} data`)
    .evaluateAll((elements) =>
      (elements as unknown as Data[]).map(({ value, textContent }) => ({ value, textContent })),
    );
  return shown.map(({ value, textContent }) => {
    const [sign, text] = textContent.startsWith('−') ? [-1, textContent.slice(1)] : [1, textContent];
    expect(sign * (parseMoney(text.replace('/h', '')) ?? NaN)).toBe(Number(value));
    return Number(value);
  });
}

const sum = (amounts: readonly number[]) => amounts.reduce((total, amount) => total + amount, 0);

it('shows what the API says to the micro-dollar: balance, days, and a total that equals them', async () => {
  const window = await test.open(poor.renter);
  await window.goTo('/billing');
  const organization = await poor.renter.api.get<Record<string, number>>('/v1/orgs/current');
  const { items } = await poor.renter.api.get<{ items: { gpu_micro: number; disk_micro: number }[] }>(
    '/v1/billing/spend-daily?days=30',
  );
  await window.page.waitForSelector('canvas');
  const figures = await amountsIn(window, 'main dl');
  expect(figures).toEqual([organization['balance_micro'], organization['charged_per_hour_micro']]);
  const [gpu, disk] = [sum(items.map((day) => day.gpu_micro)), sum(items.map((day) => day.disk_micro))];
  expect(gpu % 10_000).not.toBe(0);
  await window.page.getByText('Each day in figures').press('Enter');
  await window.page.waitForSelector('table');
  const rows = items.toReversed().flatMap((day) => [day.gpu_micro, day.disk_micro, day.gpu_micro + day.disk_micro]);
  expect(await amountsIn(window, 'table')).toEqual(rows);
  expect(await window.page.getByText('30 days:').textContent()).toBe(
    `30 days: ${exactMoney(gpu + disk)}, of it GPU ${exactMoney(gpu)}, disk ${exactMoney(disk)}.`,
  );
  await window.shoot('billing');
  await window.checkAccess();
  await window.close();
});

it('adds up by everything that the API adds up by, and its total is that of its rows', async () => {
  const window = await test.open(poor.renter, { width: 360, height: 740 });
  await window.goTo('/billing?tab=spend&by=template');
  await window.page.waitForSelector('table >> text=Spender');
  for (const by of ['template', 'api_key', 'member', 'label', 'day', 'instance']) {
    await window.page.getByLabel('Added up by').selectOption(by);
    const { items } = await poor.renter.api.get<{ items: ChargeSum[] }>(`/v1/billing/summary?by=${by}`);
    const rows = items.flatMap((item) => [item.gpu_micro, item.disk_micro, item.total_micro]);
    const totals = [0, 1, 2].map((column) => sum(rows.filter((_, index) => index % 3 === column)));
    await window.page.waitForURL(`**by=${by}`);
    await eventually(`the sums by ${by}`, async () => (await amountsIn(window, 'table')).length === rows.length + 3);
    expect(await amountsIn(window, 'table')).toEqual([...rows, ...totals]);
  }
  expect(await window.page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
  await window.page.goBack();
  await window.page.waitForURL('**by=day');
  await window.shoot('billing-spend');
  await window.checkAccess();
  await window.close();
});

it('shows on which times the charges of an instance rest: their price is what it has cost', async () => {
  const window = await test.open(poor.renter, { width: 360, height: 740 });
  await window.goTo(`/instances/${poor.id}?tab=cost`);
  await window.page.getByText('GPU time: 1 h 20 min 34.567 s').waitFor();
  expect(await amountsIn(window, 'main section li')).toEqual([GPU_MICRO, (await poor.read()).spend_micro]);
  expect(await window.page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
  await window.shoot('instance-cost-times');
  await window.goTo('/billing?tab=transactions&kind=charge');
  const charged = window.page.getByRole('table').getByRole('link', { name: 'Spender' }).first();
  expect(await charged.getAttribute('href')).toBe(`/instances/${poor.id}`);
  await window.checkAccess();
  await window.close();
});

it('shows the ledger page by page, and saves all of it, whatever an operator has written', async () => {
  const renter = await test.control.renter(0);
  const reason = '<img src=x onerror=alert(1)>' + 'W'.repeat(100);
  for (let index = 1; index <= 52; index++) {
    const credit = { amount_micro: 1_000_000 + index, reason };
    await test.control.operator.post(`/v1/operator/organizations/${renter.organizationId}/credits`, credit);
  }
  const window = await test.open(renter);
  await window.goTo('/billing?tab=transactions');
  await window.page.waitForSelector('text=These 50 add up to');
  const first = await amountsIn(window, 'table');
  expect(first).toEqual(Array.from({ length: 50 }, (_, index) => 1_000_052 - index));
  expect(await amountsIn(window, 'nav p')).toEqual([sum(first)]);
  await window.shoot('billing-transactions');
  await window.checkAccess();
  await window.page.getByRole('link', { name: 'Older' }).press('Enter');
  await window.page.waitForSelector('text=These 2 add up to');
  expect(await amountsIn(window, 'table')).toEqual([1_000_002, 1_000_001]);
  await window.page.goBack();
  await window.page.waitForSelector('text=These 50 add up to');
  const saved = window.page.waitForEvent('download');
  await window.page.getByRole('button', { name: 'Save as CSV' }).click();
  const lines = (await readFile(await (await saved).path(), 'utf8')).trim().split(/\r?\n/);
  expect(lines.length).toBe(53);
  await window.close();
});

it('sets caps by the keyboard, exactly, and says how full they are', async () => {
  const read = () => poor.renter.api.get<SpendCaps>('/v1/orgs/current/spend-caps');
  const window = await test.open(poor.renter);
  await window.goTo('/billing');
  await window.page.getByRole('button', { name: 'Change the caps' }).press('Enter');
  const day = window.page.getByLabel('Spent on this day (UTC), at most');
  await day.fill('a lot');
  expect(await window.page.getByRole('button', { name: 'Set the caps' }).isDisabled()).toBe(true);
  const { spent_day_micro: spent } = await read();
  const cap = 2 * spent + 1;
  await day.fill(exactMoney(cap));
  await window.checkAccess();
  await day.press('Enter');
  await window.page.waitForSelector('meter');
  expect((await read()).day_micro).toBe(cap);
  // Never more room than there is.
  await window.page.getByText(`${exactMoney((await read()).present_burn_per_hour_micro)}/h, no cap`).waitFor();
  const words = `${exactMoney(spent)} of ${exactMoney(cap)}, 50 % used`;
  await window.page.waitForSelector(`text=${words}`);
  await window.shoot('billing-caps');
  await window.close();
});

it('asks before caps stop what runs, and again if more would be stopped than it has said', async () => {
  const own = await makePoor(test.control, await test.control.template({ name: 'Spender' }), 2);
  await own.credit(100 * GPU_MICRO);
  await own.pass(HOUR_MS);
  const [id, other = ''] = own.ids;
  await own.renter.api.post(`/v1/instances/${other}/stop`);
  await statusIs(own.renter.api, other, 'stopped');
  const window = await test.open(own.renter);
  window.expectComplaints(/409/);
  const { page } = window;
  await window.goTo('/billing');
  await page.getByRole('button', { name: 'Change the caps' }).click();
  await page.getByLabel('Spent on this day (UTC), at most').fill('0.01');
  await page.getByRole('button', { name: 'Set the caps' }).click();
  const asked = (instances: string) =>
    page.getByRole('alertdialog', { name: `Set the caps and stop ${instances}`, exact: true });
  await asked('1 instance').getByText('Setting them ends the running work.').waitFor();
  await window.checkAccess();
  await own.renter.api.post(`/v1/instances/${other}/start`);
  await statusIs(own.renter.api, other, 'running');
  await asked('1 instance').getByRole('button', { name: 'Set the caps' }).click();
  await asked('2 instances').waitFor();
  expect((await own.read(id)).status).toBe('running');
  expect((await own.renter.api.get<SpendCaps>('/v1/orgs/current/spend-caps')).day_micro).toBeNull();
  await asked('2 instances').getByRole('button', { name: 'Set the caps' }).click();
  await page.getByText('of $0.01, 100 % used').waitFor();
  for (const each of own.ids) await statusIs(own.renter.api, each, 'stopped');
  await window.close();
});

it('asks before a limit that is used up already stops its instance', async () => {
  const own = await makePoor(test.control, await test.control.template({ name: 'Limited' }), 1);
  await own.credit(100 * GPU_MICRO);
  await own.pass(HOUR_MS);
  const { id } = own;
  const window = await test.open(own.renter);
  window.expectComplaints(/409/);
  const { page } = window;
  await window.goTo(`/instances/${id}?tab=settings`);
  await page.getByLabel('At most, in $').fill('0.01');
  const save = page.getByRole('button', { name: 'Save the label and the limits' });
  await save.click();
  const asked = page.getByRole('alertdialog', { name: 'Save the limits and stop Limited' });
  await asked.getByText('This stops the instance now').waitFor();
  await window.checkAccess();
  await asked.getByRole('button', { name: 'Keep it as it is' }).click();
  await asked.waitFor({ state: 'detached' });
  expect(await own.read(id)).toMatchObject({ status: 'running', max_charge_micro: null });
  await save.click();
  await asked.getByRole('button', { name: 'Save the limits and stop it' }).click();
  await page.getByText('The settings are saved').waitFor();
  await statusIs(own.renter.api, id, 'stopped');
  expect(await own.read(id)).toMatchObject({ max_charge_micro: 10_000 });
  await window.close();
});

it('says before anybody pays that no cards are taken, with the id that an operator asks for, and promises no mails', async () => {
  const window = await test.open(poor.renter);
  await window.goTo('/billing');
  await window.page.getByText('This control plane sends no mail').waitFor();
  expect(await window.page.getByText('Mails warn you').count()).toBe(0);
  await window.page.getByRole('link', { name: 'Add money' }).press('Enter');
  const dialog = window.page.getByRole('dialog');
  await dialog.getByText('takes no payments by card').waitFor();
  expect(await dialog.getByLabel('Id of the organization').textContent()).toBe(poor.renter.organizationId);
  await window.checkAccess();
  await dialog.getByRole('button', { name: 'Close' }).click();
  await dialog.waitFor({ state: 'detached' });
  await window.close();
});

it('names the days of UTC on the charts, wherever the reader is', async () => {
  const drawnIn = async (timezoneId: string) => {
    const window = await test.open(poor.renter, { timezoneId });
    const drawn = await window.canvasWords();
    await window.goTo('/billing');
    await window.page.waitForSelector('text=Days of UTC');
    const days = await drawn(/^\d+ [A-Z]/);
    await window.close();
    return days;
  };
  const inUtc = await drawnIn('UTC');
  expect(inUtc.length).toBeGreaterThan(2);
  expect(await drawnIn('Pacific/Auckland')).toEqual(inUtc);
});
