import { readFileSync, readdirSync } from 'node:fs';

/** Returns the processor time of all threads of a process since its start, in milliseconds. */
export function cpuMsOf(pid: number): number {
  const tasks = `/proc/${pid}/task`;
  const spent = readdirSync(tasks).map((task) => readFileSync(`${tasks}/${task}/schedstat`, 'utf8').split(' ')[0]);
  return spent.reduce((sum, ns) => sum + Number(ns), 0) / 1e6;
}

/** Returns the memory of a process, in kB. */
export function residentKbOf(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? NaN);
}
