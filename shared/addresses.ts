import { isIP } from 'node:net';

/** The host, without brackets, and the port of `HOST:PORT`; undefined where it is none. */
export function splitAddress(address: string): { host: string; port: number } | undefined {
  const match = /^(?:\[(.+)\]|([^:[\]]+)):(\d{1,5})$/.exec(address);
  const [host = match?.[2], port] = [match?.[1], Number(match?.[3])];
  return host === undefined || port > 65_535 ? undefined : { host, port };
}

/** Whether a host name or IP address, without brackets, is this machine alone. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}
