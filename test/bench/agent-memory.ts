import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Benchmark } from './benchmark.js';
import { MeasuredAgent, residentMb } from './measured-agent.js';

/** Several heartbeats, so that what an agent does at rest has loaded all that it needs. */
const REST_MS = 35_000;

/** The resident memory of a connected agent and of its access proxy, beside a Node process that does nothing. */
export const agentMemory: Benchmark = async () => {
  const measured = await MeasuredAgent.start();
  const idle = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], { stdio: 'ignore' });
  try {
    await pause(REST_MS);
    const idleMb = residentMb(idle.pid ?? 0);
    const [agentMb, proxyMb] = [residentMb(measured.pid), residentMb(measured.proxyPid)];
    const id = randomUUID();
    await measured.bringUp(id, true);
    await measured.destroy(id);
    await pause(REST_MS);
    const usedMb = residentMb(measured.pid);
    return {
      idle_node_mb: round(idleMb),
      agent_mb: round(agentMb),
      agent_ratio: round(agentMb / idleMb),
      agent_after_a_workload_mb: round(usedMb),
      proxy_mb: round(proxyMb),
      proxy_ratio: round(proxyMb / idleMb),
    };
  } finally {
    idle.kill();
    await measured.stop();
  }
};

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
