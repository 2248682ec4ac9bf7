import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestConsole } from '../../harness/console.js';

let test: TestConsole;
beforeAll(async () => {
  test = await TestConsole.start();
});
afterAll(() => test.stop());

it('leads into the console, and leaves its token nowhere', async () => {
  const renter = await test.control.renter();
  const { token } = await renter.api.post<{ token: string }>('/v1/auth/sign-in-link');
  const window = await test.open(renter);
  const { page, context } = window;
  await context.clearCookies();
  await page.goto(`/sign-in/link#${token}`);
  const button = page.getByRole('button', { name: 'Sign in' });
  await button.waitFor();
  expect(new URL(page.url()).hash).toBe('');
  await window.checkAccess();
  await button.click();
  await page.waitForURL('**/instances');
  await page.waitForSelector('[data-connection=live]', { state: 'attached' });
  window.expectComplaints(/404/);
  await page.goto(`/sign-in/link#${token}`);
  await button.click();
  await page.getByText('This link is wrong, or it was used').waitFor();
  await page.goto('/sign-in/link');
  await page.getByText('The address has no link').waitFor();
  expect(await button.isDisabled()).toBe(true);
  await window.close();
});
