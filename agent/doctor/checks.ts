import { randomUUID } from 'node:crypto';
import type { Clock } from '../../shared/clock.js';
import type { AgentConfig } from '../config.js';
import type { GpuDriver } from '../host/gpus/driver.js';
import { HostKeys } from '../host/network/ssh-host-key.js';
import { Engine } from '../runtime/docker/engine.js';
import { probeDiskQuota } from '../runtime/docker/data-roots/quota-probe.js';
import { RunnerJobs } from '../runtime/docker/vm/runner-job.js';
import { VmSupport } from '../runtime/docker/vm/vm-support.js';
import type { GpuTestResult } from '../domain/gpu-verdict.js';
import { dockerChecks } from './docker-checks.js';
import type { Check } from './finding.js';
import { gpuChecks } from './gpu-checks.js';
import { hostChecks } from './host-checks.js';
import { hostKeyChecks } from './host-key-checks.js';
import { leftChecks } from './left-checks.js';
import { linkChecks, type AskDaemon } from './link-checks.js';
import { versionChecks } from './version-checks.js';
import { vmChecks } from './vm-checks.js';

/** What costs work to find out: the command finds it out anew, and a running agent knows it already. */
export interface Costly {
  /** Returns whether Docker enforces the sizes of disks. */
  enforcesQuota: () => Promise<boolean>;
  vmSupport: Pick<VmSupport, 'whyUnsupported'>;
  hostKeys: Pick<HostKeys, 'check'>;
  /** Returns what a test container with a GPU has shown; the command has the running agent start one. */
  testGpus: () => Promise<GpuTestResult>;
}

/** Returns the checks of `gpurent-agent doctor`, which a running agent makes too. */
export function checksOf(config: AgentConfig, clock: Clock, gpus: GpuDriver, ask: AskDaemon, costly: Costly): Check[] {
  return [
    ...linkChecks(config, clock, ask),
    ...hostChecks(config),
    ...hostKeyChecks(costly.hostKeys, ask),
    ...dockerChecks(config, clock, costly.enforcesQuota),
    ...leftChecks(config, clock),
    ...versionChecks(config, clock),
    ...gpuChecks(config, gpus, clock, costly.testGpus),
    ...vmChecks(config, clock, costly.vmSupport),
  ];
}

/** Fills a small disk, boots a small machine, and has the agent start a container. */
export function findOut(config: AgentConfig, clock: Clock, gpus: GpuDriver, testGpus: Costly['testGpus']): Costly {
  const engine = new Engine(config.dockerSocket, clock);
  const jobs = new RunnerJobs(engine, randomUUID(), config.vms.runner);
  return {
    enforcesQuota: () => probeDiskQuota(engine, config.guestTools),
    vmSupport: new VmSupport(engine, jobs, config.vms, gpus, clock),
    hostKeys: HostKeys.of(config),
    testGpus,
  };
}
