import type { PortRange } from '../../agent/domain/ports.js';

/** Vitest runs one file at a time in each worker; those of one run have different numbers, from 1 on. */
const WORKER = Number(process.env['VITEST_POOL_ID'] ?? 0);
/** Below the ports that the kernel takes for outgoing connections. */
const FIRST_PORT = 20_000;
const PORTS_PER_WORKER = 1_000;

/** Where instances on the Docker that all tests share have their networks. */
export const SHARED_SUBNET = '10.214.0.0/16';
/** The same on a Docker of a test's own: two of them do not know of each other's networks. */
export const OWN_SUBNET = `10.${215 + WORKER}.0.0/16`;

let taken = 0;

/** Returns ports that no test beside this one uses. */
export function takePorts(count: number): PortRange {
  if (taken + count > PORTS_PER_WORKER) taken = 0;
  const first = FIRST_PORT + WORKER * PORTS_PER_WORKER + taken;
  taken += count;
  return { first, last: first + count - 1 };
}

/** Returns one such port. */
export function takePort(): number {
  return takePorts(1).first;
}
