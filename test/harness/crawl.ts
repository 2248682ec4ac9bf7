import type { Locator } from 'playwright-core';
import { THEMES, type ConsoleWindow } from './console.js';

/** Goes through pages and what they open, and notes the titles of all dialogs. */
export class Crawl {
  private readonly titles = new Set<string>();
  private readonly openers = new Set<string>();

  constructor(private readonly window: ConsoleWindow) {}

  /** Opens the menus beside the pages, goes to the addresses and to what their tabs lead to, opens what these open, and returns the titles of that. */
  async visit(addresses: readonly string[]): Promise<ReadonlySet<string>> {
    const paths = new Set(addresses);
    await this.openEach(this.window.page.locator('header [aria-haspopup]'), 'every page');
    for (const path of paths) {
      await this.window.moveTo(path);
      await this.window.checkAccess('html', THEMES);
      for (const tab of await this.window.page.locator('main nav a[aria-current]').all())
        paths.add((await tab.getAttribute('href')) ?? path);
      const boxes = this.window.page.getByRole('checkbox', { name: /^Select all/ });
      if ((await boxes.count()) > 0) {
        await boxes.first().check();
        await this.window.page.getByRole('group', { name: 'Selected instances' }).waitFor();
      }
      await this.openEach(this.window.page.locator('main [aria-haspopup]:not(:disabled)'), path);
    }
    return this.titles;
  }

  /** Opens what each of these opens, once for each kind of it. */
  private async openEach(openers: Locator, path: string): Promise<void> {
    const words = await openers.allInnerTexts();
    for (const [index, word] of words.entries()) {
      const [route = ''] = path.replace(/[0-9a-f-]{36}/, '$id').split('?');
      if (this.openers.has(`${route} ${word}`)) continue;
      this.openers.add(`${route} ${word}`);
      await openers.nth(index).click();
      const popup = this.window.page.locator('[role=dialog], [role=alertdialog], [role=menu]');
      await popup.waitFor();
      await this.window.rest(path);
      this.titles.add((await popup.getByRole('heading').allInnerTexts())[0] ?? word);
      await this.window.checkAccess('[role=dialog], [role=alertdialog], [role=menu]', THEMES);
      await this.window.page.keyboard.press('Escape');
      await popup.waitFor({ state: 'detached' });
    }
  }
}
