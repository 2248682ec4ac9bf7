import type { FastifyInstance } from 'fastify';
import type { AddressInfo } from 'node:net';
import { parseAddress } from '../shared/network/addresses.js';
import type { Clock } from '../shared/clock.js';
import { SetupError, messageOf } from '../shared/coded-error.js';

/** A start request waits up to ten seconds for its host. */
const DRAIN_MS = 15_000;

/** Finishes open requests within the longest time that a request can take, then closes the remaining connections. */
export async function closeHttp(http: FastifyInstance | undefined, clock: Clock): Promise<void> {
  if (!http) return;
  const cut = clock.schedule(DRAIN_MS, () => http.server.closeAllConnections());
  await http.close();
  cut.cancel();
}

/** Binds `host:port` (port 0: any) and returns the address bound. Throws SetupError. */
export async function listen(http: FastifyInstance, address: string): Promise<string> {
  const at = parseAddress('GPURENT_HTTP_ADDRESS', address);
  try {
    await http.listen(at);
  } catch (error) {
    throw new SetupError(`cannot serve HTTP on ${address}: ${messageOf(error)}`, { cause: error });
  }
  const { port } = http.server.address() as AddressInfo;
  return address.replace(/:\d+$/, `:${port}`);
}
