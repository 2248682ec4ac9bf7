import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestConsole } from '../../harness/console.js';
import { statusIs } from '../../harness/control-plane.js';
import { GPU_MICRO, HOUR_MS, makePoor } from '../../harness/poor.js';
import { StripeDouble } from '../../harness/stripe-double.js';

let stripe: StripeDouble;
let test: TestConsole;
beforeAll(async () => {
  stripe = await StripeDouble.start();
  test = await TestConsole.start({ stripe: stripe.settings });
});
afterAll(async () => {
  await test.stop();
  await stripe.stop();
});

/** Tells the control plane, as Stripe does, that a checkout was paid. */
async function pay(cents: number, metadata: object): Promise<void> {
  const session = { id: 'cs_1', payment_intent: 'pi_1', currency: 'usd', amount_total: cents, payment_status: 'paid' };
  const now = test.control.clock.now();
  const { payload, signature } = stripe.event('checkout.session.completed', { ...session, metadata }, now);
  const headers = { 'Content-Type': 'application/json', 'Stripe-Signature': signature };
  const answer = await fetch(`${test.control.url}/v1/webhooks/stripe`, { method: 'POST', headers, body: payload });
  expect(answer.status).toBe(200);
}

it('leads to the payment provider and back, and shows the money as soon as it is there', async () => {
  const window = await test.open(await test.control.renter(0));
  const { page } = window;
  window.expectComplaints(/^asked https:\/\/checkout\.stripe\.com\//);
  await page.route('https://checkout.stripe.com/**', (route) =>
    route.fulfill({ contentType: 'text/html', body: '<h1>The page of the provider</h1>' }),
  );
  await window.goTo('/billing?pay=true');
  const amount = page.getByLabel('Amount in dollars');
  await amount.fill('0.005');
  await amount.press('Enter');
  await page.waitForSelector('text=Give dollars and whole cents');
  await window.checkAccess();
  await amount.fill('12.34');
  await page.getByRole('button', { name: 'Pay $12.34' }).click();
  await page.getByText('The page of the provider').waitFor();
  const session = stripe.sessions.at(-1);
  expect(session?.amountCents).toBe(1_234);
  const back = new URL(session?.successUrl ?? '');
  // It has a tab that is none, too.
  await window.goTo(back.pathname + back.search);
  await page.getByText('The money is in your balance as soon as').waitFor();
  await page.locator('header').getByText('$0.00', { exact: true }).waitFor();
  await window.shoot('billing-paid');
  await window.checkAccess();
  await pay(1_234, session?.metadata ?? {});
  await page.locator('header').getByText('$12.34').waitFor();
  await window.goTo('/?checkout=cancelled');
  await page.getByText('Nothing was paid').waitFor();
  await window.close();
});

it('warns of a low balance, stops what nobody pays for, and says why', async () => {
  const poor = await makePoor(test.control, await test.control.template({ name: 'Spender' }));
  await poor.credit(10 * GPU_MICRO);
  const window = await test.open(poor.renter);
  const { page } = window;
  // The event stream is cut when the clock moves far.
  window.expectComplaints(/ERR_INCOMPLETE_CHUNKED_ENCODING/);
  await window.goTo('/instances');
  const warning = page.getByRole('status', { name: 'Balance' });
  await page.getByRole('heading', { name: 'Running' }).waitFor();
  expect(await warning.textContent()).toBe('');
  await poor.pass(9 * HOUR_MS);
  await warning.getByText('Your balance lasts 2 h 59 min at what is charged now').waitFor();
  await window.shoot('low-balance');
  await window.checkAccess();
  await poor.pass(3 * HOUR_MS + 1);
  await page.getByRole('heading', { name: 'Stopped' }).waitFor();
  await warning.getByText('Your balance is used up: running instances are stopped').waitFor();
  await warning.getByRole('link', { name: 'Add money' }).waitFor();
  await window.goTo(`/instances/${poor.id}`);
  await page
    .locator('ol')
    .getByText(/balance/)
    .first()
    .waitFor();
  await window.shoot('stopped-unpaid');
  await window.close();
});

it('says what a suspension and a dispute forbid, until when disks are kept, and offers nothing that is refused', async () => {
  const poor = await makePoor(test.control, await test.control.template({ name: 'Offender' }));
  const act = (path: string, body: object) =>
    test.control.operator.post(`/v1/operator/organizations/${poor.renter.organizationId}/${path}`, body);
  await poor.renter.api.post(`/v1/instances/${poor.id}/stop`);
  await statusIs(poor.renter.api, poor.id, 'stopped');
  const window = await test.open(poor.renter);
  const { page } = window;
  await window.goTo('/instances');
  const start = page.getByRole('button', { name: /^Start/ });
  const rent = page.getByRole('link', { name: 'Rent a machine' });
  await start.waitFor();
  expect(await rent.count()).toBe(1);
  await act('suspend', { reason: 'it sends spam', keep_disks_days: 14 });
  const notice = page.getByRole('status', { name: 'Suspension' });
  await notice.getByText('An operator has suspended this organization: it sends spam').waitFor();
  const { suspension } = await poor.renter.api.get<{ suspension: { disks_kept_until: string } }>('/v1/orgs/current');
  expect(await notice.locator('time').getAttribute('datetime')).toBe(suspension.disks_kept_until);
  await start.waitFor({ state: 'detached' });
  expect(await rent.count()).toBe(0);
  await page.getByRole('button', { name: /^Destroy/ }).waitFor();
  await window.shoot('suspended');
  await window.checkAccess();
  await act('restore', { reason: 'a mistake' });
  await start.waitFor();
  expect(await notice.textContent()).toBe('');
  await act('dispute', { reason: 'a complaint' });
  await notice.getByRole('link', { name: 'See the disputed payments' }).waitFor();
  await start.waitFor({ state: 'detached' });
  await window.close();
});
