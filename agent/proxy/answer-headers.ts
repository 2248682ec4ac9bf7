import type { IncomingHttpHeaders } from 'node:http';
import { isOwnCookie } from './authorize.js';

/**
 * Headers whose effect reaches beyond the port, or stays in the browser after the instance is gone, when its port is another renter's.
 * docs/dev/security-model.md says for each which it is.
 */
const NOT_PASSED_ON = [
  'alt-svc',
  'clear-site-data',
  'expect-ct',
  'nel',
  'public-key-pins',
  'public-key-pins-report-only',
  'report-to',
  'sec-session-challenge',
  'sec-session-registration',
  'secure-session-challenge',
  'secure-session-registration',
  'strict-transport-security',
  // Node throws uncaught if none can follow.
  'trailer',
];

/**
 * Removes from a workload's answer what it could use against other ports of the same host name: the proxy's cookies of any port, those
 * of a control plane, and headers with an effect on the whole name.
 */
export function confine(headers: IncomingHttpHeaders): void {
  for (const name of NOT_PASSED_ON) Reflect.deleteProperty(headers, name);
  const cookies = headers['set-cookie']?.filter((cookie) => !isOwnCookie(cookie)) ?? [];
  if (cookies.length > 0) headers['set-cookie'] = cookies;
  else delete headers['set-cookie'];
}
