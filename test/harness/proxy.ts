import { fileURLToPath } from 'node:url';
import { ProxyClient, proxyChild } from '../../agent/proxy/client.js';
import { silentLogger } from '../../shared/logger.js';
import type { ServerIdentity } from '../../shared/server-identity.js';
import { ManualClock } from './manual-clock.js';

/** The access proxy as a program. */
export const PROXY = fileURLToPath(new URL('../../dist/agent/proxy/main.js', import.meta.url));

/** An access proxy in processes of its own, on loopback, as an agent without systemd has it. */
export function startProxy(identity?: ServerIdentity): ProxyClient {
  const proxy = new ProxyClient(proxyChild(PROXY), '127.0.0.1', new ManualClock(), silentLogger, identity);
  proxy.start();
  proxy.complete();
  return proxy;
}
