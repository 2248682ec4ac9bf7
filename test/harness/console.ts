import type { AxeResults, RunOptions } from 'axe-core';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import type { Browser, BrowserContext, CDPSession, Page } from 'playwright-core';
import { eventually } from '../../scripts/eventually.js';
import { expect } from 'vitest';
import { isNight } from './at-night.js';
import { closeWindows, sessionCookie, sharedChromium } from './chromium.js';
import { TestControlPlane, type Renter } from './control-plane.js';
import { NOON } from './manual-clock.js';
import { WindowPool } from './window-pool.js';

/** Where `npm run build` puts the console. */
export const BUILT_CONSOLE = resolve('dist/console');

/** The program of axe, for a page. */
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** A page that asks the API for nothing, also for operators. */
const READS_NOTHING = '/templates/new';

/** The themes of the console. */
export const THEMES = ['light', 'dark'] as const;

/** The rules of axe whose findings depend on the theme. */
const RULES_OF_COLOURS = ['color-contrast', 'link-in-text-block'];

/** One control plane that serves the built console, and a browser, for the tests of a file. */
export class TestConsole {
  private readonly pool: WindowPool;

  private constructor(
    readonly control: TestControlPlane,
    readonly browser: Browser,
  ) {
    this.pool = this.makePool('UTC');
  }

  static async start(options: Parameters<typeof TestControlPlane.start>[0] = {}): Promise<TestConsole> {
    if (!existsSync(BUILT_CONSOLE)) throw new Error('the console is not built: npm run build');
    const control = await TestControlPlane.start({ at: NOON, consoleFolder: BUILT_CONSOLE, ...options });
    return new TestConsole(control, await sharedChromium());
  }

  async stop(): Promise<void> {
    await closeWindows(this.browser);
    await this.control.stop();
  }

  /** Another name than that of the instances: there the cookie of a session counts. */
  get home(): string {
    return this.control.url.replace('127.0.0.1', 'localhost');
  }

  /** Opens a window in which a renter is signed in. */
  async open(renter: Renter, options: WindowOptions = {}): Promise<ConsoleWindow> {
    const { width = 1440, height = 900, theme = 'light', timezoneId } = options;
    // A window keeps the time zone in which it was made.
    const page = await (timezoneId ? this.makePool(timezoneId) : this.pool).take({ width, height, theme });
    await page.context().addCookies([sessionCookie(this.home, renter.api.token ?? '')]);
    return new ConsoleWindow(page.context(), page, this.home, timezoneId ? undefined : this.pool);
  }

  /** Opens a window in which a renter acts for an organization that they have joined. */
  async openFor(renter: Renter, organizationId: string): Promise<ConsoleWindow> {
    const window = await this.open(renter);
    // Once: afterwards the console chooses.
    await window.runBeforePages(`
      if (!sessionStorage.chosen) localStorage.setItem('gpurent.organization', '${organizationId}');
      sessionStorage.chosen = 'yes';
    `);
    return window;
  }

  private makePool(timezoneId: string): WindowPool {
    // Relative times are shown by the clock of the page.
    const scripts = [setClock(NOON - Date.now()), NOTE_SHIFTS];
    return new WindowPool(this.browser, { baseURL: this.home, timezoneId }, scripts);
  }
}

/** What Chromium says of a request that is under way while Docker makes or removes a network: it takes that for a change of its own. */
export const NETWORK_CHANGES = /ERR_NETWORK_CHANGED/;

/** How much of a page may move while it is read: half of the window by a twenty-fifth of its height, for example. */
const MOST_SHIFT = 0.02;

/**
 * Notes what moves on a page without an act of its reader, from when it is opened until its reader acts; it runs in the browser. A shift is
 * the part of the window in which something moves, times how far, as a part of the window.
 */
const NOTE_SHIFTS = `{
  window.shifts = [];
  let hasActed = false;
  for (const act of ['pointerdown', 'keydown', 'input']) addEventListener(act, () => (hasActed = true), { capture: true });
  const nameOf = ({ node }) => node?.nodeName + ' ' + (node?.textContent ?? '').slice(0, 40);
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput, sources } of list.getEntries())
      if (!hasActed && !hadRecentInput) window.shifts.push({ value, moved: sources.map(nameOf) });
  }).observe({ type: 'layout-shift', buffered: true });
}`;

/** Sets the clock of a page; it runs in the browser. */
const setClock = (aheadMs: number) => `{
  const real = Date;
  const now = () => real.now() + ${aheadMs};
  window.Date = new Proxy(real, {
    construct: (_, given, made) => Reflect.construct(real, given.length > 0 ? given : [now()], made),
    apply: () => new Date().toString(),
    get: (_, name) => (name === 'now' ? now : Reflect.get(real, name)),
  });
}`;

interface Shift {
  value: number;
  /** What has moved. */
  moved: string[];
}

interface WindowOptions {
  width?: number;
  height?: number;
  theme?: 'light' | 'dark';
  timezoneId?: string;
}

/** A window of a browser. It notes what breaks a promise of the console: see {@link ConsoleWindow.close}. */
export class ConsoleWindow {
  private readonly complaints: string[] = [];
  private readonly expected: RegExp[] = [];
  private devTools: CDPSession | undefined;

  constructor(
    readonly context: BrowserContext,
    readonly page: Page,
    private readonly home: string,
    /** Takes its page back; absent: nobody does. */
    private pool?: WindowPool | undefined,
  ) {
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') this.complaints.push(message.text());
    });
    page.on('pageerror', (error) => void this.complaints.push(error.message));
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(`${this.home}/`) && !url.startsWith('data:')) this.complaints.push(`asked ${url}`);
    });
  }

  /** Allows complaints that a test provokes, such as those of the browser about an answer with an error. */
  expectComplaints(...patterns: RegExp[]): void {
    this.expected.push(...patterns);
  }

  /** Throws if the page has broken its policy, thrown, complained, or asked another origin for anything. */
  check(): void {
    const unexpected = this.complaints.filter((text) => !this.expected.some((pattern) => pattern.test(text)));
    expect(unexpected).toEqual([]);
  }

  /** Throws if more than a little of the page at an address has moved while it was read. */
  async checkShifts(path: string): Promise<void> {
    // What is drawn next is what was noted last.
    const shifts = await this.page.evaluate<Shift[]>(
      'new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => resolve(window.shifts))))',
    );
    const sum = shifts.reduce((all, { value }) => all + value, 0);
    if (sum > MOST_SHIFT) throw new Error(`${path} moves by ${sum.toFixed(3)}: ${JSON.stringify(shifts)}`);
  }

  async close(): Promise<void> {
    if (this.pool) {
      await this.devTools?.detach();
      await this.pool.giveBack(this.page);
    } else await this.context.close();
    this.check();
  }

  /** Runs a script in each page of this window from now on, before the scripts of the page. */
  async runBeforePages(script: string): Promise<void> {
    this.pool = undefined;
    await this.context.addInitScript(script);
  }

  /** Goes to an address of the console, and waits until its page and the event stream are there. */
  async goTo(path: string): Promise<void> {
    await this.page.goto(path);
    await this.page.waitForSelector('main h1');
    await this.page.waitForSelector('[data-connection=live]', { state: 'attached' });
  }

  /** Goes to an address as a link of the console would, without loading the console anew, and waits until everything is read. */
  async moveTo(path: string): Promise<void> {
    await this.startMove(path);
    await this.rest(path);
  }

  /** Begins to go there, and waits for nothing. */
  async startMove(path: string): Promise<void> {
    await this.page.evaluate(`{
      window.shifts = [];
      __TSR_ROUTER__.navigate({ href: ${JSON.stringify(path)} });
    }`);
  }

  /**
   * Forgets what pages have read, so that the next one reads everything anew as after a reload, which costs four times as much. What the
   * shell reads stays.
   */
  async forget(): Promise<void> {
    await this.moveTo(READS_NOTHING);
    await this.page.evaluate(`__TSR_ROUTER__.options.context.queries.removeQueries({ type: 'inactive' })`);
  }

  /**
   * Waits for the page to sign in that leads back to an address. Several answers can lead there, and a later navigation ends an earlier one:
   * so this waits for the page, and for no navigation.
   */
  async reachSignIn(returnTo: string): Promise<void> {
    await this.page.waitForSelector('#email');
    const { pathname, search } = new URL(this.page.url());
    expect(pathname + search).toBe(`/sign-in?${new URLSearchParams({ return_to: returnTo }).toString()}`);
  }

  /** Waits until the page is shown with everything that it reads. */
  rest(path: string): Promise<unknown> {
    return eventually(`${path} to be read`, () =>
      this.page.evaluate<boolean>(`
        (({ state, options }) => state.status === 'idle' && options.context.queries.isFetching() === 0 &&
          !document.querySelector('[aria-label^=Loading]'))(__TSR_ROUTER__)
      `),
    );
  }

  /** Checks the access to a dialog that shows a secret once, and tries what closes other dialogs. Throws unless the secret is still there, and then gone by its button. */
  async keepSecret(label: string): Promise<string> {
    const shown = this.page.getByLabel(label, { exact: true });
    const secret = await shown.innerText();
    await this.checkAccess('[role=dialog]');
    await this.page.keyboard.press('Escape');
    await this.page.mouse.click(3, 3);
    // Where the console is left, the browser asks.
    this.page.once('dialog', (question) => void question.dismiss());
    await this.page.evaluate('history.back()');
    // A dialog that closes is gone once it has faded.
    await this.page.evaluate('Promise.all(document.getAnimations().map((each) => each.finished))');
    expect(await shown.innerText()).toBe(secret);
    await this.page.getByRole('button', { name: 'I have copied it' }).press('Enter');
    await shown.waitFor({ state: 'detached' });
    return secret;
  }

  /** Notes what is written on canvases from now on. Returns a function that waits for at least one that matches, and returns all that match. */
  async canvasWords(): Promise<(pattern: RegExp) => Promise<string[]>> {
    await this.runBeforePages(`
      window.drawnWords = [];
      const { fillText } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.fillText = function (words, x, ...rest) {
        window.drawnWords.push(words + ' at ' + Math.round(x));
        return fillText.call(this, words, x, ...rest);
      };`);
    return async (pattern) => {
      const found = `[...new Set(window.drawnWords.filter((each) => ${pattern}.test(each)))]`;
      return eventually(`what matches ${pattern} on a canvas`, async () => {
        const words = await this.page.evaluate<string[]>(found);
        return words.length > 0 && words;
      });
    };
  }

  /** Makes pictures of the page in both themes and three widths, in the folder TEST_SCREENSHOTS; without it, none. */
  async shoot(name: string): Promise<void> {
    const folder = process.env['TEST_SCREENSHOTS'];
    if (folder === undefined) return;
    await this.page.evaluate('window.scrollTo(0, 0)');
    const before = this.page.viewportSize();
    for (const width of [360, 800, 1440]) {
      await this.page.setViewportSize({ width, height: 900 });
      for (const colorScheme of ['light', 'dark'] as const) {
        await this.page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        await this.page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`), fullPage: true });
      }
    }
    if (before) await this.page.setViewportSize(before);
  }

  /**
   * Throws if axe finds something that keeps people out, in what a selector selects. By day it looks at one theme: the tests of access look
   * at each page and dialog in both.
   */
  async checkAccess(
    part = 'html',
    themes: readonly ('light' | 'dark')[] = isNight ? THEMES : ['light'],
  ): Promise<void> {
    for (const colorScheme of themes) {
      await this.page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await this.loadAxe();
      const options: RunOptions = { resultTypes: ['violations'] };
      if (colorScheme === 'dark') options.runOnly = RULES_OF_COLOURS;
      const look = `axe.run(${JSON.stringify(part)}, ${JSON.stringify(options)}).then(({ violations }) => violations)`;
      const violations = await this.page.evaluate<AxeResults['violations']>(look);
      const found = violations.map(({ id, nodes }) => ({
        theme: colorScheme,
        id,
        where: nodes.map(({ html }) => html),
      }));
      expect(found).toEqual([]);
    }
  }

  /** Loads the program of axe. A document that has it needs no second one, which costs as much as a run. */
  private async loadAxe(): Promise<void> {
    if (await this.page.evaluate<boolean>('typeof axe === "object"')) return;
    // An evaluation by Playwright would take the browser twice as long: it has the page compile the program as a text.
    this.devTools ??= await this.context.newCDPSession(this.page);
    await this.devTools.send('Runtime.evaluate', { expression: AXE });
  }
}
