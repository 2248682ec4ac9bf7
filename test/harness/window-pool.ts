import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { openContext } from './chromium.js';

/** Runs no script, and its headers let it stay in the renderer process of the console. */
const WITHOUT_SCRIPT = '/sign-in';

interface Look {
  width: number;
  height: number;
  theme: 'light' | 'dark';
}

/**
 * Windows of a browser for one test after the other. A renderer process that has run the console opens it again in a third of the processor
 * time. A test finds no cookie, no storage and no history of the one before, but the same HTTP cache.
 */
export class WindowPool {
  private readonly free: Page[] = [];

  constructor(
    private readonly browser: Browser,
    private readonly options: BrowserContextOptions,
    /** Run in each page before its own scripts. */
    private readonly scripts: readonly string[],
  ) {}

  /** Returns a page in a context of its own. */
  async take({ width, height, theme }: Look): Promise<Page> {
    const page = this.free.pop() ?? (await this.make());
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
    return page;
  }

  /** Takes a page back, unless something of its test cannot be taken from it: then it is closed. */
  async giveBack(page: Page): Promise<void> {
    if (page.isClosed()) return page.context().close();
    try {
      await this.clear(page);
      this.free.push(page);
    } catch {
      await page.context().close();
    }
  }

  private async make(): Promise<Page> {
    const context = await openContext(this.browser, this.options);
    for (const script of this.scripts) await context.addInitScript(script);
    return context.newPage();
  }

  private async clear(page: Page): Promise<void> {
    const context = page.context();
    for (const other of context.pages()) if (other !== page) await other.close();
    for (const event of ['console', 'pageerror', 'request', 'response', 'dialog'] as const)
      page.removeAllListeners(event);
    for (const event of ['request', 'response', 'page'] as const) context.removeAllListeners(event);
    const devTools = await context.newCDPSession(page);
    // The console would go to the sign-in by itself, or ask before a form that is half filled in is left.
    await devTools.send('Emulation.setScriptExecutionDisabled', { value: true });
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await context.unrouteAll({ behavior: 'ignoreErrors' });
    await context.setOffline(false);
    await context.clearPermissions();
    await context.clearCookies();
    await page.mouse.move(0, 0);
    await page.goto(WITHOUT_SCRIPT);
    await devTools.send('Emulation.setScriptExecutionDisabled', { value: false });
    await page.evaluate('localStorage.clear(); sessionStorage.clear()');
    await devTools.send('Page.resetNavigationHistory');
    await devTools.detach();
  }
}
