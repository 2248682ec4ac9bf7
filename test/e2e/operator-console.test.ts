import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { openContext, startChromium } from '../harness/chromium.js';
import { ConsoleWindow, NETWORK_CHANGES } from '../harness/console.js';
import { containersOf, SAMPLE_IMAGE } from '../harness/docker.js';
import { fingerprintOf, OPERATOR, RealPlatform } from '../harness/real.js';
import { atNight } from '../harness/at-night.js';
import { takePort } from '../harness/worker.js';

let real: RealPlatform;
let host: string;
let browser: Browser;
let operator: Person;
let renter: Person;
/** Where hosts dial, which no page can guess. */
let dialed: string;

beforeAll(async () => {
  const port = takePort();
  dialed = `localhost:${port}`;
  const controlPlaneEnv = { GPURENT_GRPC_ADDRESS: `127.0.0.1:${port}`, GPURENT_PUBLIC_GRPC_ADDRESS: dialed };
  real = await RealPlatform.startEmpty({ gpus: 2, controlPlaneEnv });
  host = real.hostName;
  browser = await startChromium();
  operator = await Person.open();
  renter = await Person.open();
});
afterAll(async () => {
  await Promise.all([operator.leave(), renter.leave()]);
  await browser.close();
  await real.stop();
});

/** Somebody at a window of their own. */
class Person {
  private constructor(private readonly window: ConsoleWindow) {}

  static async open(): Promise<Person> {
    // Another name than that of the instances: there the cookie of a session counts.
    const home = real.api.baseUrl.replace('127.0.0.1', 'localhost');
    const context = await openContext(browser, { baseURL: home, reducedMotion: 'reduce' });
    const window = new ConsoleWindow(context, await context.newPage(), home);
    // The control plane is restarted with an older store, and refuses what a suspended organization asks.
    window.expectComplaints(
      NETWORK_CHANGES,
      /ERR_(CONNECTION_REFUSED|INCOMPLETE_CHUNKED_ENCODING|EMPTY_RESPONSE)/,
      /of 4(03|04|10) /,
    );
    return new Person(window);
  }

  get page() {
    return this.window.page;
  }

  link(name: string) {
    return this.page.getByRole('link', { name, exact: true }).click();
  }

  button(name: string) {
    return this.page.getByRole('button', { name, exact: true }).click();
  }

  /** Opens the overview anew: while it is open, it looks only every half minute. */
  async lookAgain(): Promise<void> {
    const pages = this.page.getByRole('navigation', { name: 'Pages' });
    for (const name of ['Machines', 'Overview']) await pages.getByRole('link', { name, exact: true }).click();
  }

  /** Does an act that asks first; fills in what it asks for. */
  async act(name: string, fields: Record<string, string> = {}): Promise<void> {
    await this.button(name);
    const dialog = this.page.getByRole('dialog').or(this.page.getByRole('alertdialog'));
    for (const [label, value] of Object.entries(fields)) await dialog.getByLabel(label).fill(value);
    await dialog.getByRole('button', { name: name.split(':')[0] ?? '', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
  }

  /** Takes the step that is next. */
  step(name: string) {
    return this.page.locator('[aria-current=step]').getByRole('link', { name, exact: true }).click();
  }

  sees(words: string | RegExp) {
    return this.page.getByText(words).first().waitFor();
  }

  /** Rents an instance on the market; answers its id when it runs. */
  async deploy(): Promise<string> {
    await this.link('Market');
    await this.link('Deploy');
    // The market has a choice of a template, too, and stays until this page is loaded.
    await this.page.getByRole('heading', { name: 'Deploy', exact: true }).waitFor();
    await this.page.getByLabel('Template', { exact: true }).selectOption({ label: 'Sample (by the operator)' });
    await this.page.getByLabel('Size in GB', { exact: true }).fill('10');
    await this.button('Deploy');
    await this.page.waitForURL('**/instances/*-*');
    await this.statusIs('running');
    return new URL(this.page.url()).pathname.split('/').at(-1) ?? '';
  }

  statusIs(status: string) {
    return this.page.locator('main header').getByText(status, { exact: true }).waitFor();
  }

  /** Waits until so many rows of the list of instances have this status. */
  async seesInstances(status: string, count: number): Promise<void> {
    const shown = this.page.locator('main').getByText(status, { exact: true });
    await eventually(`${count} ${status}`, async () => (await shown.count()) === count, 90_000);
  }

  leave() {
    return this.window.close();
  }
}

it('leads from an empty installation to the first rented instance, by clicks and one pasted line', async () => {
  const { page } = operator;
  await page.goto('/sign-in');
  await page.fill('#email', OPERATOR.email);
  await page.fill('#password', OPERATOR.password);
  await operator.button('Sign in');
  await operator.link('Overview');

  await operator.step('Add a machine');
  await operator.button('Make the line to paste');
  const line = await page.getByLabel('Line to paste').innerText();
  expect(line).toContain(` --control-plane ${dialed} `);
  await operator.sees('Waiting for the host');
  await real.paste(line);
  const machine = page.getByRole('region', { name: host });
  await machine.getByText('By agent').waitFor();
  // What the doctor of the real agent finds depends on this computer.
  await machine.getByText(/^Reported .* by gpurent-agent doctor/).waitFor();
  await machine.getByText(/^\d+ checks are fine$/).click();
  await machine.getByText(/^ok\s*enrollment: connected to /).waitFor();
  const waiver = machine.getByRole('button', { name: 'Waive quotas', exact: true });
  await waiver.or(machine.getByText('Nothing keeps renters away.')).first().waitFor();
  if (await waiver.isVisible()) await operator.act('Waive quotas');
  await machine.getByRole('link', { name: 'Make an offer', exact: true }).click();
  await page.getByLabel('Price in dollars per hour').fill('1');
  await operator.button('Offer');
  await page.getByRole('table', { name: 'Offers' }).getByText('available').waitFor();

  await operator.link('Overview');
  await operator.step('Make a template');
  await page.getByLabel('Name', { exact: true }).fill('Sample');
  await page.getByLabel('Image', { exact: true }).fill(SAMPLE_IMAGE);
  await operator.button('Create the template');

  await renter.page.goto('/sign-up');
  await renter.page.fill('#name', 'Ann');
  await renter.page.fill('#email', 'ann@example.com');
  await renter.page.fill('#password', 'a renter password');
  await renter.button('Create the account');
  await operator.link('Overview');
  await operator.step('Choose an organization');
  await operator.link("Ann's organization");
  await operator.act('Credit', { 'Amount in dollars': '10', Reason: 'a start' });

  const id = await renter.deploy();
  expect(await containersOf(id)).toHaveLength(1);
  await operator.link('Overview');
  await page.locator('[aria-current=step]').waitFor({ state: 'detached' });
});

atNight(() => {
  it('shows a machine that is away, leads to it, and shows that it is back', async () => {
    await real.killAgent();
    await eventually('the control plane to notice', async () => !(await real.isConnected()));
    await operator.lookAgain();
    await operator.sees(`${host} is away`);
    await operator.link('Look at the machine');
    await operator.statusIs('away');
    await real.startAgent();
    await operator.link('Overview');
    await operator.sees('Nothing. All machines are there');
  });

  it('adopts by clicks what a restored backup does not know', async () => {
    const backup = real.path('backup.db');
    await real.control('backup', backup);
    const id = await renter.deploy();
    const before = await fingerprintOf(id);
    await real.stopControlPlane();
    await real.control('restore', backup);
    await real.startControlPlane();
    await real.renewSession();
    await eventually('the host', () => real.isConnected(), 60_000);

    await operator.lookAgain();
    await operator.sees(`${host} has a workload in quarantine`);
    await operator.link('Adopt or remove it');
    await operator.act(`Adopt: ${id}`);
    await operator.sees('Nothing is in quarantine');
    await renter.link('Instances');
    await renter.seesInstances('running', 2);
    expect(await fingerprintOf(id)).toEqual(before);
  });

  it('suspends an organization with all that it runs, and restores it', async () => {
    await operator.link('Organizations');
    await operator.link("Ann's organization");
    await operator.act('Suspend', { Reason: 'it attacks other networks' });
    await renter.seesInstances('stopped', 2);
    await renter.page.getByRole('link', { name: 'Sample' }).first().click();
    await renter.sees('it attacks other networks');
    // What would be refused is not offered.
    expect(await renter.page.getByRole('button', { name: 'Start Sample' }).count()).toBe(0);
    await operator.act('Restore', { Reason: 'the stolen key was revoked' });
    // Nothing starts by itself.
    await renter.statusIs('stopped');
    await renter.button('Start Sample');
    await renter.statusIs('running');
  });

  it('declares a machine lost, which ends what ran on it, and has it back with the disks that are still there', async () => {
    // One instance runs, the other one is stopped.
    const id = new URL(renter.page.url()).pathname.split('/').at(-1) ?? '';
    const isUp = async () => (await containersOf(id)).some(({ State }) => State === 'running');
    await real.killAgent();
    await eventually('the control plane to notice', async () => !(await real.isConnected()));
    await operator.lookAgain();
    await operator.sees(`${host} is away`);
    await operator.link('Look at the machine');
    await operator.statusIs('away');
    await operator.act('Declare lost');
    await operator.statusIs('lost');
    await renter.statusIs('error');
    // Nobody can tell the host.
    expect(await isUp()).toBe(true);

    await real.startAgent();
    await eventually('the host', () => real.isConnected(), 60_000);
    await operator.statusIs('connected, cordoned');
    await eventually('the workload to be stopped', async () => !(await isUp()), 90_000);
    await operator.act('Uncordon');
    await operator.statusIs('connected');
    await renter.link('Instances');
    await renter.page.locator(`main a[href^="/instances/"]:not([href*="${id}"])`).first().click();
    await renter.button('Start Sample');
    await renter.statusIs('running');
  });
});
