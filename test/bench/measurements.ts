import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MINUTE_MS } from '../../shared/time.js';
import { createControlPlane, type ControlPlane } from '../../control-plane/app.js';
import { keepMeasurements, writeMeasurements } from '../../control-plane/services/measurements/keep.js';
import { receiveMeasurements } from '../../control-plane/services/reconciler/measurements.js';
import { sql, statement } from '../../control-plane/store/sql.js';
import { MeasurementReport } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { silentLogger } from '../../shared/logger.js';
import { toMeasurement, unmeasured } from '../../shared/measurement.js';
import { ManualClock } from '../harness/manual-clock.js';
import { populate } from '../harness/large-marketplace.js';
import { PLAIN_TEXT } from '../harness/plain-text.js';
import type { Benchmark } from './benchmark.js';

const HOSTS = 1_000;
const INSTANCES_OF_A_HOST = 4;
const INSTANCES = HOSTS * INSTANCES_OF_A_HOST;
const MINUTES = 61;

/**
 * 4,000 instances on 1,000 hosts are measured for an hour: what a minute of one costs to hear and to write, as it is written (many
 * minutes at once), and as if each minute were written by itself.
 */
export const measurements: Benchmark = async () => {
  const late = measureHour((controlPlane) => keepAll(controlPlane));
  const atOnce = measureHour(({ platform }) => {
    return timed(() => writeMeasurements(platform));
  });
  return {
    instances: INSTANCES,
    heard_us_a_minute: late.heardUs,
    written_us_a_minute: late.writtenUs,
    longest_turn_cpu_ms: late.longestMs,
    bytes_of_an_hour: late.bytes,
    written_each_minute_us: atOnce.writtenUs,
    ratio_of_writes: Math.round((late.writtenUs / atOnce.writtenUs) * 100) / 100,
  };
};

/** `write`: returns the processor time of its longest transaction, in milliseconds. */
function measureHour(write: (controlPlane: ControlPlane) => number) {
  const folder = mkdtempSync(join(tmpdir(), 'gpurent-bench-'));
  const clock = new ManualClock();
  const controlPlane = createControlPlane(configOf(folder), silentLogger, { clock, commitsAlone: true });
  try {
    populate(controlPlane, clock.now());
    spread(controlPlane, clock.now());
    const size = () => statSync(join(folder, 'gpurent.db')).size;
    checkpoint(controlPlane);
    const before = size();
    let [heardMs, writtenMs, longestMs] = [0, 0, 0];
    for (let minute = 0; minute < MINUTES; minute++) {
      clock.advance(MINUTE_MS);
      heardMs += timed(() => hearAll(controlPlane, minute));
      writtenMs += timed(() => (longestMs = Math.max(longestMs, write(controlPlane))));
    }
    writtenMs += timed(() => writeMeasurements(controlPlane.platform));
    checkpoint(controlPlane);
    const each = (ms: number) => Math.round((ms * 10_000) / INSTANCES / MINUTES) / 10;
    const bytes = Math.round((size() - before) / INSTANCES);
    return { heardUs: each(heardMs), writtenUs: each(writtenMs), longestMs: Math.round(longestMs * 10) / 10, bytes };
  } finally {
    controlPlane.platform.store.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Puts four instances on each host. */
function spread({ platform: { store } }: ControlPlane, now: number): void {
  store.transact((tx) => {
    tx.run(
      statement(sql`
      WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${HOSTS - 1})
      INSERT INTO machines (id, name, region, public_address, arch, cpu_model, cpu_cores, memory_mb, disk_gb,
        disk_quota, vm_capable, gpu_release_supported, enrolled_at)
      SELECT 'machine-' || i, '', '', '', '', '', 1, 1, 1, '', 0, 1, ${now} FROM n`),
    );
    tx.run(
      statement(sql`UPDATE instances SET machine_id = 'machine-' || (CAST(substr(id, 10) AS INTEGER) / ${sql.lit(INSTANCES_OF_A_HOST)})
        WHERE CAST(substr(id, 10) AS INTEGER) < ${INSTANCES}`),
    );
  });
}

function hearAll({ platform }: ControlPlane, minute: number): void {
  for (let host = 0; host < HOSTS; host++) {
    const instances = Array.from({ length: INSTANCES_OF_A_HOST }, (_, index) => ({
      instanceId: `instance-${host * INSTANCES_OF_A_HOST + index}`,
      minutes: [toMeasurement(useOf(minute, host + index), 0)],
    }));
    const message = MeasurementReport.encode({ instances }).finish();
    receiveMeasurements(platform, `machine-${host}`, MeasurementReport.decode(message));
  }
}

/** Numbers that change as those of a busy instance. */
function useOf(minute: number, seed: number) {
  const noise = (most: number) => (minute * 7_919 + seed * 104_729) % most;
  const none = unmeasured(0);
  return {
    ...none,
    cpuMillis: 3e3 + noise(900),
    cpuMaxMillis: 3900,
    cpuLimitMillis: 8e3,
    memoryUsedBytes: 31e9 + 4096 * noise(1e5),
    memoryLimitBytes: 64e9,
    diskUsedBytes: 5e8 + 4096 * noise(1e3),
    diskLimitBytes: 1e10,
    networkInBytes: noise(9e6),
    networkOutBytes: noise(8e5),
    sshSessions: 1,
    portConnections: noise(3),
    connectionsOpened: noise(9),
    gpus: [
      {
        usePercent: 80 + noise(20),
        useMaxPercent: 100,
        memoryUsedBytes: 7e10,
        memoryTotalBytes: 8e10,
        powerWatts: 400 + noise(50),
        temperatureCelsius: 60 + noise(5),
      },
    ],
  };
}

/** Runs the worker until nothing is due. Returns the processor time of its longest run, in milliseconds. */
function keepAll({ platform }: ControlPlane): number {
  let longestMs = 0;
  for (;;) {
    let written = 0;
    longestMs = Math.max(
      longestMs,
      timed(() => ({ written } = keepMeasurements(platform))),
    );
    if (written === 0) return longestMs;
  }
}

function checkpoint({ platform: { store } }: ControlPlane): void {
  store.truncateIdleLog();
}

function timed(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

function configOf(folder: string) {
  return {
    httpAddress: '',
    grpcAddress: '',
    tls: PLAIN_TEXT,
    database: join(folder, 'gpurent.db'),
    secretKey: Buffer.alloc(32, 7),
    logLevel: 'silent',
    logFormat: null,
    rateLimits: { perAddress: 1, perCredential: 1, attemptsPerAddress: 1, attemptsPerAccount: 1 },
  };
}
