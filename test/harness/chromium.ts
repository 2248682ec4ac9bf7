import { execFileSync } from 'node:child_process';
import { chromium, type Browser, type LaunchOptions } from 'playwright-core';

/** Starts the Chromium of this machine, or the one at the path in TEST_CHROMIUM. Tests run as root, where it has no sandbox. */
export function startChromium(options: LaunchOptions = {}): Promise<Browser> {
  const executablePath =
    process.env['TEST_CHROMIUM'] ?? execFileSync('which', ['chromium'], { encoding: 'utf8' }).trim();
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'], ...options });
}

/** Returns the cookie of a session at a control plane. Its home is at `localhost`, where browsers take such a cookie without TLS. */
export function sessionCookie(home: string, token: string) {
  const url = home.replace('http:', 'https:');
  return { name: '__Host-gpurent', value: token, url, secure: true, httpOnly: true, sameSite: 'Lax' as const };
}
