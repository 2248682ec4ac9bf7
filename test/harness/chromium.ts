import { execFileSync } from 'node:child_process';
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions } from 'playwright-core';

/**
 * Starts this machine's Chromium without the parts that draw windows, which costs two thirds of the processor time; or the command in
 * TEST_CHROMIUM. Tests run as root, where it has no sandbox.
 */
export function startChromium(options: readonly string[] = []): Promise<Browser> {
  const command = process.env['TEST_CHROMIUM'] ?? 'chromium-headless-shell';
  const executablePath = execFileSync('which', [command], { encoding: 'utf8' }).trim();
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', ...options] });
}

/** What a page does may be late on a busy machine: playwright's own half a minute is too short. */
const PATIENCE_MS = 90_000;

/** Opens a browser's window of its own, which shares no cookie with another. */
export async function openContext(browser: Browser, options: BrowserContextOptions = {}): Promise<BrowserContext> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(PATIENCE_MS);
  return context;
}

let shared: Promise<Browser> | undefined;

/** Returns the Chromium of this process, which ends with it: test files that run one after the other in a process share its start. */
export async function sharedChromium(): Promise<Browser> {
  shared ??= startChromium();
  const browser = await shared;
  if (browser.isConnected()) return browser;
  shared = undefined;
  return sharedChromium();
}

/** Closes all windows of a browser that goes on. */
export async function closeWindows(browser: Browser): Promise<void> {
  await Promise.all(browser.contexts().map((context) => context.close()));
}

/** Returns the cookie of a session at a control plane. Its home is at `localhost`, where browsers take such a cookie without TLS. */
export function sessionCookie(home: string, token: string) {
  const url = home.replace('http:', 'https:');
  return { name: '__Host-gpurent', value: token, url, secure: true, httpOnly: true, sameSite: 'Lax' as const };
}
