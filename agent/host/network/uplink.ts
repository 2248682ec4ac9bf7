import { readFile } from 'node:fs/promises';

const ROUTES = '/proc/net/route';
const DEFAULT = '00000000';

/** Returns the interface of the IPv4 default route; undefined without one. */
export async function uplink(): Promise<string | undefined> {
  const [, ...routes] = (await readFile(ROUTES, 'utf8')).split('\n').map((line) => line.split('\t'));
  return routes.find(([, destination, , , , , , mask]) => destination === DEFAULT && mask === DEFAULT)?.[0];
}

/** Reads the speed of the default route's interface, in megabits per second; null if the kernel does not know it. */
export async function lineMbit(): Promise<number | null> {
  try {
    const mbit = Number(await readFile(`/sys/class/net/${await uplink()}/speed`, 'utf8'));
    return mbit > 0 ? mbit : null;
  } catch {
    return null;
  }
}
