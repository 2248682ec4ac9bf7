import { execFile } from 'node:child_process';
import { MINUTE_MS } from '../shared/time.js';
import { promisify } from 'node:util';
import type { Remover } from './observation/run-recorder.js';
import type { Workload } from './runtime/workload.js';

const run = promisify(execFile);
/** Longer than all deadlines of Docker calls in the process. */
const DEADLINE_MS = 10 * MINUTE_MS;

export const OPERATIONS = ['find', 'stop', 'remove'] as const;
export type Operation = (typeof OPERATIONS)[number];

/** Stops and removes workloads by running `command` OPERATION INSTANCE, so that a crash ends only that process. */
export function isolatedBy(command: readonly string[]): Remover {
  const [program = '', ...args] = command;
  const ask = async (operation: Operation, instanceId: string) =>
    (await run(program, [...args, operation, instanceId], { timeout: DEADLINE_MS })).stdout;
  return {
    find: async (instanceId) => JSON.parse(await ask('find', instanceId)) as Workload,
    stop: async (instanceId) => {
      await ask('stop', instanceId);
    },
    remove: async (instanceId) => {
      await ask('remove', instanceId);
    },
  };
}

/** Carries out one operation in that process. Returns its output as JSON. */
export async function carryOut(remover: Remover, operation: Operation, instanceId: string): Promise<string> {
  const result = await remover[operation](instanceId);
  return JSON.stringify(result ?? null);
}
