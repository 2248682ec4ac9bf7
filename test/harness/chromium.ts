import { execFileSync } from 'node:child_process';
import { chromium, type Browser } from 'playwright-core';

/** Starts the Chromium of this machine, or the one at the path in TEST_CHROMIUM. Tests run as root, where it has no sandbox. */
export function startChromium(): Promise<Browser> {
  const executablePath =
    process.env['TEST_CHROMIUM'] ?? execFileSync('which', ['chromium'], { encoding: 'utf8' }).trim();
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
}
