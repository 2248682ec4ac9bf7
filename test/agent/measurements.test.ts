import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import type { GpuReading } from '../../agent/host/gpus/driver.js';
import type { Accounts } from '../../agent/measurements/accounts.js';
import type { DiskUse } from '../../agent/measurements/disk-use.js';
import { Measurements } from '../../agent/measurements/measurements.js';
import type { LocatedWorkload } from '../../agent/runtime/workload.js';
import type { MeasurementAnswer, MeasurementReport, Measurement } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { silentLogger } from '../../shared/logger.js';
import { PacedLog } from '../../shared/paced-log.js';
import { ManualClock } from '../harness/manual-clock.js';

const ROUND_MS = 10_000;

let clock: ManualClock;
let running: string[];
let located: Map<string, Partial<LocatedWorkload['workload']>>;
/** The run that each process belongs to. */
let pids: Map<string, number>;
let accounts: Accounts;
let gpus: Map<string, GpuReading>;
let disk: DiskUse | null;
let sent: MeasurementReport[];
let answers: MeasurementAnswer[];
let isCongested: boolean;
/** What the host has been asked. */
let asked: Record<'locate' | 'gpus' | 'disk', number>;
let askGpus: () => Promise<ReadonlyMap<string, GpuReading>>;
let measurements: Measurements;

beforeEach(() => {
  clock = new ManualClock();
  running = ['i'];
  located = new Map([['i', { gpuUuids: ['GPU-b', 'GPU-a'] }]]);
  pids = new Map([['i', 1]]);
  accounts = {
    cpuUs: 0,
    cpuLimitMillis: 2_000,
    memoryUsedBytes: 500,
    memoryLimitBytes: 1_000,
    networkInBytes: 0,
    networkOutBytes: 0,
    sshSessions: 0,
    portConnections: 0,
    connectionsOpened: 0,
  };
  gpus = new Map([
    ['GPU-a', reading(10)],
    ['GPU-b', reading(20)],
  ]);
  disk = { usedBytes: 7, limitBytes: 70 };
  [sent, answers, isCongested] = [[], [], false];
  asked = { locate: 0, gpus: 0, disk: 0 };
  askGpus = async () => gpus;
  measurements = new Measurements(
    () => running,
    {
      locate: async (id) => {
        asked.locate++;
        const workload = located.get(id);
        return workload && ({ workload, pid: pids.get(id) } as LocatedWorkload);
      },
      accounts: ({ pid }) => ([...pids.values()].includes(pid) ? accounts : undefined),
      diskUse: async () => {
        asked.disk++;
        return disk;
      },
    },
    {
      use: () => {
        asked.gpus++;
        return askGpus();
      },
    },
    {
      measurements: (report) => {
        if (!isCongested) sent.push(report);
        return !isCongested;
      },
      measurementAnswer: (answer) => answers.push(answer),
    },
    clock,
    new PacedLog(clock, silentLogger),
  );
  measurements.connected(true);
  measurements.start();
});

const reading = (usePercent: number): GpuReading => ({
  usePercent,
  memoryUsedBytes: 1,
  memoryTotalBytes: 2,
  powerWatts: 3,
  temperatureCelsius: 4,
});

async function rounds(count: number, each: () => void = () => undefined): Promise<void> {
  for (let index = 0; index < count; index++) {
    each();
    // What times out in a round does so before the next one.
    for (const ms of [ROUND_MS - 1_000, 1_000]) {
      clock.advance(ms);
      for (let turn = 0; turn < 3; turn++) await nextTurn();
    }
  }
}

const minutes = (): Measurement[] => sent.flatMap(({ instances }) => instances.flatMap((each) => each.minutes));

function points(id = 'i'): Measurement[] {
  measurements.answer({ queryId: 'q', instanceId: id });
  return answers.at(-1)?.points ?? [];
}

it('a minute has what was used in it, GPUs in the order of the host, and nothing that was not measured', async () => {
  accounts = { ...accounts, portConnections: null };
  await rounds(7, () => {
    accounts.cpuUs = (accounts.cpuUs ?? 0) + 5_000_000;
    accounts.networkInBytes = (accounts.networkInBytes ?? 0) + 100;
    accounts.sshSessions = 2;
    disk = { usedBytes: 9, limitBytes: 70 };
    gpus.set('GPU-b', reading(90));
  });
  expect(sent).toHaveLength(1);
  expect(sent[0]?.instances.map(({ instanceId }) => instanceId)).toEqual(['i']);
  expect(minutes()).toEqual([
    {
      endedMsAgo: 0,
      gpus: [
        {
          usePercent: 10,
          useMaxPercent: 10,
          memoryUsedBytes: 1,
          memoryTotalBytes: 2,
          powerWatts: 3,
          temperatureCelsius: 4,
        },
        {
          usePercent: 90,
          useMaxPercent: 90,
          memoryUsedBytes: 1,
          memoryTotalBytes: 2,
          powerWatts: 3,
          temperatureCelsius: 4,
        },
      ],
      // Of the first ten seconds it is not known, so neither is the highest.
      cpuMillis: 500,
      cpuLimitMillis: 2_000,
      memoryUsedBytes: 500,
      memoryLimitBytes: 1_000,
      diskUsedBytes: 9,
      diskLimitBytes: 70,
      networkInBytes: 500,
      networkOutBytes: 0,
      sshSessions: 2,
    },
  ]);
  await rounds(6);
  expect(minutes()[1]?.cpuMaxMillis).toBe(500);
});

it('while nothing should run, the host looks at nothing and sends nothing', async () => {
  running = [];
  await rounds(20);
  expect([asked, sent]).toEqual([{ locate: 0, gpus: 0, disk: 0 }, []]);
});

it('Docker is asked once for each run, the driver once a round, the file system once a minute', async () => {
  await rounds(30);
  expect(asked).toEqual({ locate: 1, gpus: 30, disk: 6 });
  pids.set('i', 2);
  await rounds(6);
  expect(asked.locate).toBe(2);
});

it('a counter that begins anew, as after a start of the workload, is not measured', async () => {
  accounts = { ...accounts, cpuUs: 9e9, networkInBytes: 9e9 };
  await rounds(2);
  accounts = { ...accounts, cpuUs: 5, networkInBytes: 5 };
  await rounds(1);
  expect(points().map(({ cpuMillis, networkInBytes }) => [cpuMillis, networkInBytes])).toEqual([
    [undefined, undefined],
    [0, 0],
    [undefined, undefined],
  ]);
  // In another run everything begins anew, also where its counters are higher.
  pids.set('i', 2);
  accounts = { ...accounts, cpuUs: 9e9 };
  await rounds(1);
  expect(points().at(-1)?.cpuMillis).toBeUndefined();
});

it('a host that hangs or fails measures the rest, and does not ask again meanwhile', async () => {
  askGpus = () => new Promise(() => undefined);
  await rounds(3);
  expect(asked.gpus).toBe(3);
  askGpus = () => Promise.reject(new Error('GPU is lost'));
  await rounds(3);
  const measured = points();
  expect(measured.length).toBeGreaterThan(3);
  for (const point of measured) expect(point).toMatchObject({ gpus: [{}, {}], memoryUsedBytes: 500 });
  expect(measured.every((point) => point.gpus.every((gpu) => gpu.usePercent === undefined))).toBe(true);
});

it('a workload that is down has no points, and its last minute is sent all the same', async () => {
  await rounds(3);
  running = [];
  await rounds(3);
  expect(points()).toHaveLength(3);
  expect(minutes()).toHaveLength(1);
  await rounds(400);
  expect(points()).toEqual([]);
  expect(minutes()).toHaveLength(1);
});

it('what cannot be sent is sent later, for an hour, and the last minutes again after a connect', async () => {
  measurements.disconnected();
  await rounds(70 * 6);
  expect(sent).toEqual([]);
  measurements.connected(true);
  isCongested = true;
  await rounds(2);
  isCongested = false;
  await rounds(1);
  expect(minutes().map(({ endedMsAgo }) => endedMsAgo)).toEqual(
    Array.from({ length: 60 }, (_, index) => 3 * ROUND_MS + (59 - index) * MINUTE_MS),
  );
  sent = [];
  measurements.connected(true);
  await rounds(1);
  expect(minutes()).toHaveLength(12);
});

it('a control plane of the release before is sent nothing', async () => {
  measurements.connected(false);
  await rounds(20);
  expect(sent).toEqual([]);
});

it('no more workloads are measured than the host can keep, and no message has more minutes than it may', async () => {
  const most = Array.from({ length: 200 }, (_, index) => `i${index}`);
  running = most;
  located = new Map(most.map((id) => [id, { gpuUuids: [] }]));
  pids = new Map(most.map((id, index) => [id, index]));
  measurements.disconnected();
  await rounds(30);
  measurements.connected(true);
  await rounds(3);
  const counts = sent.map(({ instances }) => instances.reduce((sum, each) => sum + each.minutes.length, 0));
  expect(counts).toEqual([500, 140]);
  expect(new Set(sent.flatMap(({ instances }) => instances.map(({ instanceId }) => instanceId))).size).toBe(128);
  // Others come in their place.
  running = most.slice(128);
  await rounds(6);
  expect(points('i199')).toHaveLength(6);
  expect(points('i0')).toEqual([]);
});

it('nothing is measured after its end', async () => {
  await rounds(1);
  measurements.stop();
  await rounds(10);
  expect(asked.gpus).toBe(1);
});
