import { randomUUID } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { NvidiaGpus } from '../../agent/host/nvidia/nvidia.js';
import { readAccounts } from '../../agent/measurements/accounts.js';
import { Measurements } from '../../agent/measurements/measurements.js';
import type { LocatedWorkload } from '../../agent/runtime/workload.js';
import { systemClock } from '../../shared/clock.js';
import { AgentMessage, type MeasurementReport } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { silentLogger } from '../../shared/logger.js';
import { PacedLog } from '../../shared/paced-log.js';
import { docker } from '../harness/docker.js';
import { ManualClock } from '../harness/manual-clock.js';
import type { Benchmark } from './benchmark.js';
import { MeasuredAgent } from './measured-agent.js';

const WORKLOADS = 8;
const ROUNDS = 60;
const ROUND_MS = 10_000;
/** Between two rounds, so that caches of the processor are as cold as on a host. */
const PAUSE_MS = 300;
const PORTS = { GPURENT_AGENT_PORTS: '23517-23540', GPURENT_AGENT_GPUS: `simulated:${WORKLOADS}` };

/** Measures eight workloads as an agent does, with its options of Node, and prints what a round costs. Programs that it runs count apart. */
export const agentMeasurements: Benchmark = async () => {
  setFlagsFromString('--no-opt');
  const measured = await MeasuredAgent.start(PORTS);
  const folder = mkdtempSync(join(tmpdir(), 'gpurent-bench-smi-'));
  const ids = Array.from({ length: WORKLOADS }, () => randomUUID());
  try {
    for (const [index, id] of ids.entries()) await measured.bringUp(id, true, [], index);
    const located = new Map(await Promise.all(ids.map(async (id, index) => [id, await locate(id, index)] as const)));
    provideSmi(folder);
    return await measureRounds(ids, located);
  } finally {
    for (const id of ids) await measured.destroy(id).catch(() => undefined);
    await measured.stop();
    rmSync(folder, { recursive: true });
  }
};

async function measureRounds(ids: string[], located: ReadonlyMap<string, LocatedWorkload>) {
  const clock = new ManualClock();
  let [bytes, messages] = [0, 0];
  const outbox = {
    measurements: (value: MeasurementReport) => {
      bytes += AgentMessage.encode({ message: { $case: 'measurementReport', value } }).finish().length;
      messages += 1;
      return true;
    },
    measurementAnswer: () => undefined,
  };
  const instruments = {
    locate: async (id: string) => located.get(id),
    accounts: readAccounts,
    diskUse: async () => null,
  };
  const gpus = new NvidiaGpus(systemClock);
  const measurements = new Measurements(() => ids, instruments, gpus, outbox, clock, new PacedLog(clock, silentLogger));
  measurements.connected(true);
  measurements.start();
  const before = process.cpuUsage();
  const idle = process.cpuUsage(before);
  for (let round = 0; round < ROUNDS; round++) {
    clock.advance(ROUND_MS);
    await pause(PAUSE_MS);
  }
  measurements.stop();
  const spent = process.cpuUsage(before);
  const roundMs = (spent.user + spent.system - idle.user - idle.system) / 1_000 / ROUNDS;
  return {
    workloads: WORKLOADS,
    round_cpu_ms: Math.round(roundMs * 100) / 100,
    percent_of_a_core: Math.round((roundMs / ROUND_MS) * 100 * 1_000) / 1_000,
    message_bytes_a_minute: Math.round(bytes / messages),
  };
}

async function locate(id: string, index: number): Promise<LocatedWorkload> {
  const { Id, State } = await docker.getContainer(`gpurent-${id}`).inspect();
  const workload = { gpuUuids: [uuidOf(index)], ports: [] } as unknown as LocatedWorkload['workload'];
  return { workload, pid: State.Pid, containerId: Id, sshContainerPort: 22_022, disk: null };
}

function uuidOf(index: number): string {
  return `GPU-00000000-0000-4000-8000-00000000000${index}`;
}

/** A program that answers as nvidia-smi does of eight GPUs. */
function provideSmi(folder: string): void {
  const lines = Array.from({ length: WORKLOADS }, (_, index) => `${uuidOf(index)}, 87, 1024, 81559, 412.63, 61`);
  const file = join(folder, 'nvidia-smi');
  writeFileSync(file, `#!/bin/sh\ncat <<END\n${lines.join('\n')}\nEND\n`);
  chmodSync(file, 0o755);
  process.env['PATH'] = `${folder}:${process.env['PATH']}`;
}
