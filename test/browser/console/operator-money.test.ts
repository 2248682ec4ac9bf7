import { afterAll, beforeAll, expect, it } from 'vitest';
import { insertRow } from '../../../control-plane/store/sql.js';
import { DAY_MS } from '../../../shared/time.js';
import { TestConsole, type ConsoleWindow } from '../../harness/console.js';
import { GPU_MICRO, HOUR_MS, makePoor } from '../../harness/poor.js';
import { StripeDouble } from '../../harness/stripe-double.js';

const HOSTILE = '<b onclick=alert(1)>Payer';

let stripe: StripeDouble;
let test: TestConsole;
let window: ConsoleWindow;
beforeAll(async () => {
  stripe = await StripeDouble.start();
  test = await TestConsole.start({ stripe: stripe.settings });
  const operator = await test.control.renter(0);
  test.control.makeOperator(operator.userId);
  window = await test.open(operator);
});
afterAll(async () => {
  await window.close();
  await test.stop();
  await stripe.stop();
});

async function tell(type: string, object: object): Promise<void> {
  const { payload, signature } = stripe.event(type, object, test.control.clock.now());
  const headers = { 'Content-Type': 'application/json', 'Stripe-Signature': signature };
  const answer = await fetch(`${test.control.url}/v1/webhooks/stripe`, { method: 'POST', headers, body: payload });
  expect(answer.status).toBe(200);
}

const paid = (organizationId: string, id: string) =>
  tell('checkout.session.completed', {
    id: `cs_${id}`,
    payment_intent: id,
    currency: 'usd',
    amount_total: 2e3,
    payment_status: 'paid',
    metadata: { gpurent_organization_id: organizationId },
  });

it('says what it is for while nothing was paid', async () => {
  const { page } = window;
  await window.goTo('/operator');
  await page.getByRole('link', { name: 'Money', exact: true }).press('Enter');
  await page.getByRole('heading', { name: 'Nothing was paid' }).waitFor();
  await window.checkAccess();
});

it('shows each payment with its organization, and what of it is in the ledger', async () => {
  const { page } = window;
  const renter = await test.control.renter(0);
  await renter.api.request('PATCH', '/v1/orgs/current', { name: HOSTILE });
  for (const id of ['pi_kept', 'pi_partly', 'pi_whole', 'pi_lost']) await paid(renter.organizationId, id);
  const refund = { currency: 'usd', status: 'succeeded' };
  await tell('refund.created', { id: 're_1', payment_intent: 'pi_partly', amount: 500, ...refund });
  await tell('refund.created', { id: 're_2', payment_intent: 'pi_whole', amount: 2_000, ...refund });
  await tell('charge.dispute.closed', { id: 'dp_1', payment_intent: 'pi_lost', amount: 2_000, status: 'lost' });
  await tell('refund.created', { id: 're_3', payment_intent: 'pi_unheard', amount: 100, ...refund });
  await window.goTo('/operator/money');
  const table = page.getByRole('table', { name: 'Payments' });
  const row = (id: string) => table.getByRole('row').filter({ hasText: id });
  for (const [id, words] of [
    ['pi_kept', 'in the ledger'],
    ['pi_partly', 'partly refunded'],
    ['pi_whole', 'refunded'],
    ['pi_lost', 'disputed and lost'],
    ['pi_unheard', 'not reported yet'],
  ] as const)
    await row(id).getByText(words).waitFor();
  await row('pi_partly').getByText('$5.00').waitFor();
  await row('pi_kept').getByRole('link', { name: HOSTILE }).waitFor();
  expect(await row('pi_unheard').getByRole('link').count()).toBe(0);
  await window.checkAccess();
  await window.shoot('operator-payments');
});

it('holds a payout against the ledger, by its id in the address', async () => {
  const { page } = window;
  const moved = (reporting_category: string, dollars: number, source: object | null) => ({
    id: `txn_${reporting_category}_${dollars}`,
    type: reporting_category,
    reporting_category,
    source,
    amount: dollars * 100,
    fee: 0,
  });
  const of = (payment_intent: string) => ({ id: `x_${payment_intent}`, payment_intent });
  stripe.payouts.set('po_1', [
    moved('charge', 20, of('pi_kept')),
    moved('charge', 19, of('pi_partly')),
    moved('charge', 7, of('pi_elsewhere')),
  ]);
  stripe.payouts.set('po_2', []);
  await page.getByRole('link', { name: 'Payouts', exact: true }).press('Enter');
  const field = page.getByRole('searchbox', { name: 'Payout' });
  await field.fill('po_1');
  await field.press('Enter');
  await page.waitForURL('**?payout=po_1');
  const table = page.getByRole('table', { name: 'Movements in the payout' });
  const row = (id: string) => table.getByRole('row').filter({ hasText: id });
  await row('pi_kept').getByText('has it', { exact: true }).waitFor();
  await row('pi_kept').getByRole('link', { name: HOSTILE }).waitFor();
  await row('pi_partly').getByText('Its event never arrived').waitFor();
  await row('pi_elsewhere').getByText('not of this marketplace').waitFor();
  await window.checkAccess();
  await window.shoot('operator-payout');
  await window.goTo('/operator/money/payouts?payout=po_2');
  await page.getByText('Nothing is in this payout.').waitFor();
  window.expectComplaints(/ of (404|422|502)/);
  await window.goTo('/operator/money/payouts?payout=po_nobody');
  await page.locator('main').getByRole('alert').waitFor();
});

it('shows what each machine has earned on each day, of all machines or one', async () => {
  const { page } = window;
  await window.goTo('/operator/money/revenue');
  await page.getByRole('heading', { name: 'Nothing was charged in these days' }).waitFor();
  await window.checkAccess();
  const [one, two] = [
    await makePoor(test.control, await test.control.template({ name: 'One' })),
    await makePoor(test.control, await test.control.template({ name: 'Two' })),
  ];
  // The event stream is cut when the clock moves far.
  window.expectComplaints(/ERR_INCOMPLETE_CHUNKED_ENCODING/);
  for (let passed = 0; passed < HOUR_MS; passed += HOUR_MS / 4) {
    await one.pass(HOUR_MS / 4);
    await two.agent.speak(two.id);
  }
  for (const { renter, id } of [one, two]) {
    await renter.api.post(`/v1/instances/${id}/stop`);
  }
  interface Earned {
    gpu_micro: number;
    disk_micro: number;
  }
  const earnedBy = async (hostId: string) =>
    (await test.control.operator.get<{ items: Earned[] }>(`/v1/operator/revenue?machine_id=${hostId}`)).items;
  const charged = async () => {
    const earned = await Promise.all([one, two].map(({ agent }) => earnedBy(agent.hostId)));
    // An hour before midnight is of two days.
    return earned.every((days) => days.reduce((sum, { gpu_micro }) => sum + gpu_micro, 0) >= GPU_MICRO);
  };
  await expect.poll(charged, { timeout: 60_000 }).toBe(true);
  await page.reload();
  const table = page.getByRole('table', { name: 'Revenue by machine and day' });
  const machines = () => table.getByRole('link', { name: /^only this machine/ }).count();
  await expect.poll(machines).toBeGreaterThan(1);
  await window.checkAccess();
  await window.shoot('operator-revenue');
  await page.getByLabel('Days').selectOption('7');
  await page.waitForURL('**?days=7');
  await page.locator(`a[href*="machine=${one.agent.hostId}"]`).first().press('Enter');
  await page.waitForURL(`**machine=${one.agent.hostId}*`);
  await expect.poll(() => table.locator(`a[href="/operator/machines/${two.agent.hostId}"]`).count()).toBe(0);
  await table.locator(`a[href="/operator/machines/${one.agent.hostId}"]`).first().waitFor();
  await page.getByLabel('Machine', { exact: true }).selectOption('');
  await page.waitForURL('**?days=7');
  await expect.poll(machines).toBeGreaterThan(1);

  const { store, clock } = test.control.core.platform;
  const earlier = { machine_id: one.agent.hostId, day: Math.floor(clock.now() / DAY_MS) - 3 };
  store.transact((tx) => tx.run(insertRow('machine_days', { ...earlier, gpu_micro: 5, disk_micro: 2 })));
  await window.goTo(`/operator/machines/${one.agent.hostId}`);
  const said = page.locator('p', { hasText: /in the last 30 UTC days, on \d of which it was used/ });
  const sum = (await earnedBy(one.agent.hostId)).reduce((all, day) => all + day.gpu_micro + day.disk_micro, 0);
  await said.locator(`data[value="${sum}"]`).waitFor();
  await said.getByText(/, on [23] of which/).waitFor();
  await window.goTo(`/operator/machines/${(await test.control.host({ name: 'unused' })).hostId}`);
  await page.getByText('Nothing was charged for its use in the last 30 days.').waitFor();
});
