import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { openContext, startChromium } from '../harness/chromium.js';
import { ConsoleWindow, NETWORK_CHANGES } from '../harness/console.js';
import { containersOf } from '../harness/docker.js';
import { RealPlatform, sshOptions } from '../harness/real.js';

const execute = promisify(execFile);

let real: RealPlatform;
let browser: Browser;

beforeAll(async () => {
  real = await RealPlatform.start({ gpus: 1 });
  await real.market();
  browser = await startChromium();
});
afterAll(async () => {
  await browser.close();
  await real.stop();
});

it('leads a person from the sign-up to a shell, and on to stop, start and destroy, by clicks', async () => {
  // Another name than that of the instances: there the cookie of a session counts.
  const home = real.api.baseUrl.replace('127.0.0.1', 'localhost');
  const context = await openContext(browser, { baseURL: home, reducedMotion: 'reduce' });
  const window = new ConsoleWindow(context, await context.newPage(), home);
  window.expectComplaints(NETWORK_CHANGES);
  const { page } = window;
  const click = (role: 'link' | 'button', name: string) => page.getByRole(role, { name, exact: true }).click();
  const statusIs = (status: string) => page.locator('main header').getByText(status, { exact: true }).waitFor();
  const keyFile = await real.makeKey('key');
  /** Runs a command by what the page says, as a person would who copies it. */
  const ssh = async (command: string) => {
    await page.getByText(/^SSH answered/).waitFor();
    const [program, ...words] = (await page.getByLabel('SSH command').innerText()).split(' ');
    expect(program).toBe('ssh');
    const { stdout } = await execute('ssh', [...sshOptions(keyFile), ...words, command], { timeout: 180_000 });
    return stdout.trim();
  };

  await page.goto('/sign-up');
  await page.fill('#name', 'Ann');
  await page.fill('#email', 'ann@example.com');
  await page.fill('#password', 'a renter password');
  await click('button', 'Create the account');
  await click('link', 'Add a key');
  await page.getByLabel('Public key').fill(readFileSync(`${keyFile}.pub`, 'utf8'));
  await click('button', 'Add the key');
  await page.getByRole('table', { name: 'SSH keys' }).waitFor();
  await click('link', 'Instances');
  await page.locator('[aria-current=step]').getByRole('link', { name: 'Add money' }).waitFor();
  const { id } = await page.evaluate<{ id: string }>("fetch('/v1/orgs/current').then((answer) => answer.json())");
  const credit = { amount_micro: 50_000_000, reason: 'a start' };
  await real.operator.post(`/v1/operator/organizations/${id}/credits`, credit);

  await click('link', 'See what is free');
  await click('link', 'Deploy');
  // The market has a choice of a template, too, and stays until this page is loaded.
  await page.getByRole('heading', { name: 'Deploy', exact: true }).waitFor();
  await page.getByLabel('Template', { exact: true }).selectOption({ label: 'Sample (by the operator)' });
  await page.getByLabel('Size in GB', { exact: true }).fill('10');
  await click('button', 'Deploy');
  await page.waitForURL('**/instances/*-*');
  const instanceId = new URL(page.url()).pathname.split('/').at(-1) ?? '';
  expect(await ssh('echo weights > /root/model && id -u')).toBe('0');
  await click('button', 'Stop Sample');
  await statusIs('stopped');
  await click('button', 'Start Sample');
  await statusIs('running');
  expect(await ssh('cat /root/model')).toBe('weights');
  await click('button', 'Destroy Sample');
  await page.getByRole('alertdialog').getByRole('button', { name: 'Destroy' }).click();
  await statusIs('destroyed');
  await eventually('no container to be left', async () => (await containersOf(instanceId)).length === 0);
  await window.close();
});
