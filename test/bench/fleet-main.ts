import { readFileSync } from 'node:fs';
import { WorkloadState } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { NOTHING } from '../../shared/observation.js';
import { VERSION } from '../../shared/version.js';
import type { FleetFile, FleetOrder, FleetReport } from './fleet.js';
import { encodeMessage, LightHost, type FleetTarget } from './light-host.js';

/** Hosts that dial at once when the fleet begins; each that is welcomed lets the next one dial. */
const TOGETHER = 32;
const REPORT_MS = 50;

const file = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as FleetFile;
const reasons: Record<string, number> = {};
let target: FleetTarget = { host: '', port: 0 };
let dialed = 0;
let beats = 0;
/** The epoch of the newest control plane that any host has met. */
let epoch = 0;

const dialNext = () => hosts[dialed++]?.dial();
const hosts = file.hosts.map(({ certificate, inventory, run }) => {
  const beganAt = performance.now();
  const ranMs = () => Math.round(performance.now() - beganAt);
  const observation = () => ({
    ...NOTHING,
    state: WorkloadState.WORKLOAD_STATE_RUNNING,
    runId: 'run',
    runningMs: ranMs(),
  });
  const state = { gpuUuids: [], diskGb: 10, origin: '' };
  const hello = () => {
    const about = { protocolMin: 1, protocolMax: 2, agentVersion: VERSION, bootId: 'bench', inventory };
    const instances = run ? [{ ...run, ...state, observation: observation() }] : [];
    const rest = {
      instances,
      epoch: 0,
      incarnation: '',
      heedsPaidTimes: true,
      unseen: false,
      answersMeasurementQueries: false,
      reportsFindings: false,
      takesUpgrades: false,
    };
    return encodeMessage({ $case: 'hello', value: { ...about, ...rest } });
  };
  const heartbeat = () => {
    const running = run ? [{ instanceId: run.instanceId, runId: 'run', runningMs: ranMs() }] : [];
    const beat = { dockerAvailable: true, gpus: inventory.gpus, running, diskFreeGb: 1_000, obstacle: '', atMs: 0 };
    return encodeMessage({ $case: 'heartbeat', value: beat });
  };
  return new LightHost({ certificate, hello, heartbeat }, file.keys, () => target, {
    welcomed: (welcome) => {
      epoch = Math.max(epoch, welcome.epoch);
      dialNext();
    },
    lost: (reason) => (reasons[reason] = (reasons[reason] ?? 0) + 1),
    sent: () => beats++,
  });
});

process.on('message', (order: FleetOrder) => {
  ({ target } = order);
  if (dialed === 0) for (let index = 0; index < TOGETHER; index++) dialNext();
});
const reporting = setInterval(() => {
  const connected = hosts.filter((host) => host.isWelcomed && host.epoch === epoch).length;
  process.send?.({ epoch, connected, beats, at: Date.now(), reasons } satisfies FleetReport);
}, REPORT_MS);
process.once('disconnect', () => {
  clearInterval(reporting);
  for (const host of hosts) host.close();
});
