import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { redialSpreadMs } from '../../control-plane/domain/machines/redial.js';
import type { ApiClient } from '../harness/api-client.js';
import { Daemon } from '../../scripts/daemon.js';
import type { BareSettings } from './bare-gateway.js';
import type { Benchmark } from './benchmark.js';
import { Fleet, type FleetFile } from './fleet.js';
import { foundMarket, type Market } from './past-market.js';
import { cpuMsOf, residentKbOf } from './process-costs.js';
import { addRuns, recruit } from './recruits.js';

const HOSTS = Number(process.env['BENCH_HOSTS'] ?? 2_000);
const FEW_HOSTS = 100;
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 2);
const BEATING_MS = 20_000;
const READING_MS = 10_000;
const PROBE_EVERY_MS = 5;
const BARE = fileURLToPath(new URL('./bare-gateway.js', import.meta.url));

/** A gateway that can be killed. */
interface Gateway {
  readonly grpcAddress: string;
  readonly pid: number;
  killAndStart(): Promise<void>;
}

type Figures = Record<string, number>;

/**
 * Measures hosts that connect by TLS with their certificates, beside a bare gRPC server with the same messages in alternating rounds:
 * until all are back after `kill -9`, the worst answer of the API meanwhile, the processor time of a heartbeat, and memory. The
 * variable BENCH_HOSTS says how many hosts.
 */
export const hosts: Benchmark = async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gpurent-hosts-'));
  const market = await foundMarket({ GPURENT_GRPC_TLS: 'on' });
  const bare = new BareGateway(folder);
  try {
    let file: FleetFile | undefined;
    await market.controlPlane.prepare(async (controlPlane) => {
      file = await recruit(controlPlane, HOSTS);
      bare.present(await controlPlane.platform.authority.certifyServer([]), file.keys.authority);
    });
    if (!file) throw new Error('there are no hosts');
    const path = join(folder, 'fleet.json');
    const { controlPlane } = market;
    const rounds: { limit: Figures; ours: Figures }[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const limit = await measure(bare, path, file);
      const ours = await measure(controlPlane, path, file, market);
      rounds.push({ limit, ours });
      process.stderr.write(`${JSON.stringify({ limit, ours })}\n`);
    }
    const few = await readsBeside(market, path, { ...file, hosts: file.hosts.slice(0, FEW_HOSTS) });
    const many = await readsBeside(market, path, file);
    const beat_with_a_run_us = round(await costOfRuns(market, path, file));
    return {
      hosts: HOSTS,
      ...summary(rounds),
      beat_with_a_run_us,
      [`read_p99_ms_${FEW_HOSTS}`]: few,
      read_p99_ms: many,
    };
  } finally {
    market.agent.close();
    await bare.stop();
    await market.controlPlane.stop();
    rmSync(folder, { recursive: true, force: true });
  }
};

async function measure(gateway: Gateway, path: string, file: FleetFile, market?: Market): Promise<Figures> {
  await gateway.killAndStart();
  const emptyKb = residentKbOf(gateway.pid);
  const fleet = await Fleet.connect(path, file, gateway.grpcAddress);
  try {
    const beat_us = await costOfBeats(gateway, fleet);
    const kb_a_host = (residentKbOf(gateway.pid) - emptyKb) / file.hosts.length;
    return { ...(await comeBack(gateway, fleet, market)), beat_us, kb_a_host };
  } finally {
    fleet.close();
  }
}

async function costOfBeats({ pid }: Gateway, fleet: Fleet): Promise<number> {
  const [cpu, beats] = [cpuMsOf(pid), fleet.latest.beats];
  await pause(BEATING_MS);
  return ((cpuMsOf(pid) - cpu) * 1_000) / (fleet.latest.beats - beats);
}

async function comeBack(gateway: Gateway, fleet: Fleet, market: Market | undefined): Promise<Figures> {
  const { epoch } = fleet.latest;
  const probes = market ? [probe(market.renter, '/healthz'), probe(market.renter, read(market))] : [];
  const began = Date.now();
  await gateway.killAndStart();
  const readyMs = Date.now() - began;
  const backMs = (await fleet.allBack(epoch)) - began;
  const [healthz = 0, get = 0] = await Promise.all(probes.map((stop) => stop()));
  const cpu = cpuMsOf(gateway.pid);
  return { back_ms: backMs, ready_ms: readyMs, back_cpu_ms: cpu, worst_healthz_ms: healthz, worst_get_ms: get };
}

/** Returns the processor time of a heartbeat in us when a workload runs on each host. */
async function costOfRuns({ controlPlane, instanceId }: Market, path: string, file: FleetFile): Promise<number> {
  let running = file;
  await controlPlane.prepare((stopped) => {
    running = addRuns(stopped, file, instanceId);
    return Promise.resolve();
  });
  const fleet = await Fleet.connect(path, running, controlPlane.grpcAddress);
  try {
    return await costOfBeats(controlPlane, fleet);
  } finally {
    fleet.close();
  }
}

function read({ instanceId }: Market): string {
  return `/v1/instances/${instanceId}`;
}

/** Asks again and again until told to stop; then returns the longest time until an answer, without refused connections. */
function probe(api: ApiClient, path: string): () => Promise<number> {
  const over = new AbortController();
  let longest = 0;
  const asking = (async () => {
    while (!over.signal.aborted) {
      const began = performance.now();
      const isAnswered = await api.get(path).then(
        () => true,
        () => false,
      );
      if (isAnswered) longest = Math.max(longest, performance.now() - began);
      await pause(PROBE_EVERY_MS);
    }
    return longest;
  })();
  return () => {
    over.abort();
    return asking;
  };
}

/** Returns the 99th percentile of reading an instance, in ms, while the hosts of `file` send heartbeats. */
async function readsBeside(market: Market, path: string, file: FleetFile): Promise<number> {
  const fleet = await Fleet.connect(path, file, market.controlPlane.grpcAddress);
  try {
    const took: number[] = [];
    const end = performance.now() + READING_MS;
    while (performance.now() < end) {
      const began = performance.now();
      await market.renter.get(read(market));
      took.push(performance.now() - began);
      await pause(PROBE_EVERY_MS);
    }
    return took.sort((a, b) => a - b)[Math.floor(took.length * 0.99)] ?? NaN;
  } finally {
    fleet.close();
  }
}

/** The median of each figure over the rounds, and the ratios to the limit. */
function summary(rounds: readonly { limit: Figures; ours: Figures }[]): Figures {
  const medianOf = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
  const median = (name: string, side: 'limit' | 'ours') => medianOf(rounds.map((round) => round[side][name] ?? NaN));
  const ratio = (name: string) => medianOf(rounds.map(({ ours, limit }) => (ours[name] ?? NaN) / (limit[name] ?? NaN)));
  const names = Object.keys(rounds[0]?.ours ?? {});
  const compared = ['back_ms', 'back_cpu_ms', 'beat_us', 'kb_a_host'];
  return Object.fromEntries(
    names.flatMap((name): [string, number][] => [
      [name, round(median(name, 'ours'))],
      ...(compared.includes(name)
        ? ([
            [`${name} of a bare gRPC server`, round(median(name, 'limit'))],
            [`${name} ratio`, round(ratio(name))],
          ] as [string, number][])
        : []),
    ]),
  );
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

/** The bare gRPC server in a process of its own. */
class BareGateway implements Gateway {
  private daemon: Daemon | undefined;
  private settings: BareSettings = {
    authority: '',
    certificate: '',
    key: '',
    port: 0,
    epoch: 0,
    redialSpreadMs: redialSpreadMs(HOSTS),
  };

  constructor(private readonly folder: string) {}

  get grpcAddress(): string {
    return `127.0.0.1:${this.settings.port}`;
  }

  get pid(): number {
    return this.daemon?.pid ?? 0;
  }

  present({ certificate, key }: { certificate: string; key: string }, authority: string): void {
    this.settings = { ...this.settings, authority, certificate, key };
  }

  async killAndStart(): Promise<void> {
    await this.stop();
    this.settings.epoch++;
    const path = join(this.folder, 'bare.json');
    writeFileSync(path, JSON.stringify(this.settings), { mode: 0o600 });
    this.daemon = Daemon.start('the bare server', BARE, [path], {}, join(this.folder, 'bare.log'));
    const { grpc } = await this.daemon.firstLine<{ grpc: string }>();
    this.settings.port = Number(grpc.split(':')[1]);
  }

  async stop(): Promise<void> {
    await this.daemon?.stop('SIGKILL');
  }
}
