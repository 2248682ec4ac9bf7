import { isIP } from 'node:net';
import { SetupError } from '../coded-error.js';

/** Splits `HOST:PORT` into the host, without brackets, and the port. Throws SetupError, which names the setting `name`. */
export function parseAddress(name: string, address: string): { host: string; port: number } {
  const match = /^(?:\[(.+)\]|([^:[\]]+)):(\d{1,5})$/.exec(address);
  const [host = match?.[2], port] = [match?.[1], Number(match?.[3])];
  if (host !== undefined && port <= 65_535) return { host, port };
  throw new SetupError(`${name} is "${address}"; give HOST:PORT, such as 127.0.0.1:8080`);
}

/** Returns whether a host name or IP address, without brackets, is loopback. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}
