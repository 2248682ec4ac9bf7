import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { uptime } from 'node:os';
import { join, resolve } from 'node:path';
import { termOf } from '../shared/network/certificate-term.js';
import { systemClock, withTimeout, type Clock } from '../shared/clock.js';
import { SetupError, messageOf } from '../shared/coded-error.js';

import { silentLogger, type Logger } from '../shared/logger.js';
import { RELEASE_KEY } from '../shared/release/verify.js';
import { ServerIdentity, fromFiles } from '../shared/network/server-identity.js';
import { assembleAgent, type Agent } from './assemble.js';
import type { Remover } from './observation/run-recorder.js';
import { agentSocket, dataRootFolder, journalFile, type AgentConfig } from './config.js';
import { Canary } from './canary/canary.js';
import { checksOf, findOut } from './doctor/checks.js';
import { DockerStarter } from './gpu-test/docker-starter.js';
import { notTested, type GpuTestResult } from './domain/gpu-verdict.js';
import type { Check } from './doctor/finding.js';
import { isDockerAway } from './domain/failure.js';
import { describeLeft } from './domain/left-behind.js';
import { speaksHttp } from './guarded-ports/answers.js';
import { gpuDriver } from './host/gpus.js';
import { requireGuestTools } from './host/guest-tools.js';
import { HaltedRunsFile } from './host/halted-runs-file.js';
import {
  diskFreeBytes,
  diskFreeGb,
  freeShareOf,
  publicAddressOf,
  readBootId,
  readInventory,
} from './host/inventory.js';
import { HostNeeds, type Need } from './host/needs.js';
import { EgressGuard, removeEgressRules } from './host/network/egress-guard.js';
import { HostKeys } from './host/network/ssh-host-key.js';
import { PortAllocator } from './host/ports.js';
import { missingForUpgrades, upgradeFolder, upgradeObstacles } from './host/upgrade-permission.js';
import type { Snapshot } from './status/snapshot.js';
import { StatusServer, askAgent } from './status/status-server.js';
import { Journal } from './journal/journal.js';
import { dialer, releaseOpener } from './link/dial.js';
import { readAccounts } from './measurements/accounts.js';
import { diskUseOf } from './measurements/disk-use.js';
import type { Introduction } from './link/enrollment.js';
import { formerFolder, formerHostId } from './link/former-state.js';
import type { Identity } from './link/identity.js';
import { RenewedIdentity } from './link/renewal.js';
import { ProxyClient, proxyChild, proxyUnit } from './proxy/client.js';
import { relayProcess, relayUnit } from './pulls/client.js';
import { AccessFiles } from './runtime/docker/files/access-files.js';
import { Containers } from './runtime/docker/containers/containers.js';
import { DataRootGuard, type DataRoots } from './runtime/docker/data-roots/data-root-guard.js';
import { DataRootNotes } from './runtime/docker/data-roots/data-root-notes.js';
import { DockerRuntime } from './runtime/docker/docker-runtime.js';
import { CANARY_OF } from './runtime/docker/labels.js';
import { UnclaimedGpus, earlierHosts, foreignWorkloads } from './runtime/docker/foreign-workloads.js';
import { EngineWatch } from './runtime/docker/docker-watch.js';
import { Engine, requireRuntime } from './runtime/docker/engine.js';
import { EtcBound } from './runtime/docker/files/etc-bound.js';
import { EtcFiles } from './runtime/docker/files/etc-files.js';
import { requireEmptyImage } from './runtime/docker/images/empty-image.js';
import { ImageCache } from './runtime/docker/images/image-cache.js';
import { Images } from './runtime/docker/images/images.js';
import { OWN_IMAGES } from './runtime/docker/images/pulled-images.js';
import { ImagePuller } from './runtime/docker/images/image-puller.js';
import { InstanceNetworks } from './runtime/docker/networks/networks.js';
import { probeDiskQuota } from './runtime/docker/data-roots/quota-probe.js';
import { removeTraces, requireNoWorkloads } from './runtime/docker/traces.js';
import { BaseDisks } from './runtime/docker/vm/base-disks.js';
import { RunnerJobs } from './runtime/docker/vm/runner-job.js';
import { VirtualMachines } from './runtime/docker/vm/virtual-machines.js';
import { VmSupport } from './runtime/docker/vm/vm-support.js';
import { portsOf } from './runtime/workload.js';

const CANARY_IMAGE = `${OWN_IMAGES}canary:1`;
/** How long a stop waits for Docker to remove networks that were made in advance. */
const STOP_PATIENCE_MS = 5_000;
/** The canary has no disk that could be lost. */
const NO_DATA_ROOT: DataRoots = {
  require: async () => undefined,
  confirm: async () => undefined,
  note: async () => undefined,
  forget: async () => undefined,
};

/**
 * Returns what this host reports about itself when it enrolls. Throws SetupError if an agent cannot run here, before a token is
 * used up.
 */
export async function inspectHost(config: AgentConfig, clock: Clock = systemClock): Promise<Introduction> {
  const engine = new Engine(config.dockerSocket, clock);
  await engine.require(config.dockerSocket);
  await requireRuntime(engine, config.containerRuntime);
  requireGuestTools(config.guestTools);
  if (config.egress) await new EgressGuard(config.egress).ensure();
  if (config.tls) (await ServerIdentity.open(fromFiles(config.tls), clock, silentLogger)).close();
  const hasDiskQuota = await probeDiskQuota(engine, config.guestTools).catch(() => false);
  const gpus = gpuDriver(config, clock);
  const support = new VmSupport(
    engine,
    new RunnerJobs(engine, randomUUID(), config.vms.runner),
    config.vms,
    gpus,
    clock,
  );
  const runsVms = (await support.whyUnsupported()) === undefined;
  const inventory = await readInventory(config, gpus, {
    root: (await engine.info()).DockerRootDir,
    hasDiskQuota,
    runsVms,
  });
  return { inventory, earlier: await earlierHosts(engine, null) };
}

/**
 * Returns lines for the host owner about what stays on this host when it becomes a new machine. Throws SetupError while the agent
 * runs, because it holds the journal open that is moved aside.
 */
export async function describeLeaving(config: AgentConfig, clock: Clock = systemClock): Promise<string[]> {
  const isRunning = await askAgent(agentSocket(config), '/status').then(
    () => true,
    () => false,
  );
  if (isRunning)
    throw new SetupError(
      'the agent is still running as the current machine; stop it first: "systemctl stop gpurent-agent"',
    );
  const hostId = formerHostId(config.stateDir);
  const left = await foreignWorkloads(new Engine(config.dockerSocket, clock), null);
  return [
    ...describeLeft(left).map(({ what, advice }) => `stays: ${what}; ${advice}`),
    ...(hostId === undefined
      ? []
      : [`is put aside: identity and journal of machine ${hostId}, in ${formerFolder(config.stateDir, hostId)}`]),
  ];
}

/** Creates the parts for Docker, GPUs and network of this host, and the runtime on top of them. */
function dockerHost(config: AgentConfig, hostId: string, logger: Logger, clock: Clock) {
  const engine = new Engine(config.dockerSocket, clock);
  const driver = gpuDriver(config, clock, (message) => logger.warn(message));
  const gpus = new UnclaimedGpus(driver, engine, hostId, clock);
  const quota = { isEnforced: false };
  const heldPorts = async () => (await runtime.list()).flatMap(portsOf);
  const ports = new PortAllocator(config.ports, config.bindAddress, heldPorts);
  const root = rootOf(engine);
  const freeShare = async () => freeShareOf(await root());
  const cache = new ImageCache(engine, clock, { file: join(config.stateDir, 'images.json'), freeShare }, logger);
  const policy = { limits: config.pulls, allowed: config.egress?.allowed ?? null, freeShare };
  const startRelay = config.pullSocket === null ? relayProcess(clock) : relayUnit(clock, config.pullSocket);
  const puller = new ImagePuller(engine, clock, policy, logger, startRelay);
  const images = new Images(engine, puller, cache, config.localImages);
  const networks = new InstanceNetworks(engine, hostId, config.subnet, clock, config.readyNetworks);
  const guard = config.egress ? new EgressGuard(config.egress) : { ensure: async () => {}, rewrite: async () => {} };
  const host = {
    ...config,
    hostId,
    publicAddress: () => publicAddressOf(config),
    hasDiskQuota: async () => quota.isEnforced,
  };
  const jobs = new RunnerJobs(engine, hostId, config.vms.runner);
  const support = new VmSupport(engine, jobs, config.vms, gpus, clock);
  const disks = new BaseDisks(engine, jobs, cache, config.vms.runner);
  const etcFiles = new EtcFiles(resolve(config.stateDir, 'etc'));
  const accessFiles = new AccessFiles(resolve(config.stateDir, 'access'));
  const kinds = {
    container: new Containers(engine, host, images, gpus, etcFiles, accessFiles),
    vm: new VirtualMachines({
      engine,
      clock,
      host,
      images,
      disks,
      support,
      passthrough: gpus.passthrough,
      settings: config.vms,
    }),
  };
  const dataRoot = new DataRootGuard(engine, new DataRootNotes(dataRootFolder(config)), hostId, logger);
  const shared = { engine, clock, ports, guard };
  const runtime: DockerRuntime = new DockerRuntime({ ...shared, host, kinds, networks, dataRoot, accessFiles });
  // The canary has its own host id in its labels, so that its containers are not taken for instances.
  const canaryHost = { ...host, hostId: `${CANARY_OF}${hostId}` };
  const canaryFiles = new EtcFiles(resolve(config.stateDir, 'etc-canary'));
  const canaryAccess = new AccessFiles(resolve(config.stateDir, 'access-canary'));
  const canaryKind = new Containers(engine, canaryHost, images, gpus, canaryFiles, canaryAccess);
  const canaryRuntime = new DockerRuntime({
    ...shared,
    host: canaryHost,
    // Not the kinds of the instances: the canary would treat their containers as its own leftovers of a crash.
    kinds: { container: canaryKind, vm: canaryKind },
    networks: new InstanceNetworks(engine, canaryHost.hostId, config.subnet, clock),
    dataRoot: NO_DATA_ROOT,
    accessFiles: canaryAccess,
  });
  const starter = config.gpus.kind === 'nvidia' ? new DockerStarter(engine, gpus, hostId, config, clock) : null;
  const canary = new Canary(canaryRuntime, () => requireEmptyImage(engine, CANARY_IMAGE), clock, logger);
  const known = { enforcesQuota: host.hasDiskQuota, vmSupport: support, hostKeys: HostKeys.of(host) };
  return {
    dataRoot,
    engine,
    gpus,
    quota,
    root,
    cache,
    guard,
    host,
    jobs,
    networks,
    support,
    runtime,
    canary,
    starter,
    known,
  };
}

/**
 * Removes what the agent has set up on this host: packet rules and what {@link removeTraces} lists. With `look` it only checks.
 * Throws SetupError while workloads of renters are on the host, or if Docker does not answer.
 */
export async function cleanHost(config: AgentConfig, options: { images: boolean; look: boolean }): Promise<void> {
  const engine = new Engine(config.dockerSocket, systemClock);
  await engine.require(config.dockerSocket);
  await requireNoWorkloads(engine);
  if (options.look) return;
  await removeTraces(engine, options);
  await removeEgressRules();
}

/** Creates only the runtime, for a process that stops or removes one workload. */
export function createRuntime(config: AgentConfig, { hostId }: Identity, logger: Logger): Remover {
  return dockerHost(config, hostId, logger, systemClock).runtime;
}

/** Tells whether Docker enforces disk quotas; false if that cannot be found out. */
function enforcesQuota(engine: Engine, { guestTools }: AgentConfig, logger: Logger): Promise<boolean> {
  return probeDiskQuota(engine, guestTools).catch((error: unknown) => {
    const reason = messageOf(error);
    logger.warn(`cannot find out whether Docker enforces disk quotas; the agent assumes that it does not: ${reason}`);
    return false;
  });
}

/** Returns what an enrolled agent needs on this host. `shown`: the certificate of web ports. */
function needsOf(
  config: AgentConfig,
  { engine, guard, gpus }: Pick<ReturnType<typeof dockerHost>, 'engine' | 'guard' | 'gpus'>,
  shown: ServerIdentity | undefined,
  status: () => StatusServer,
): Record<string, Need> {
  const requireGpus = async () => {
    if ((await gpus.inventory()).gpus.length > 0) return;
    throw new SetupError('no GPU of this host is known: "gpurent-agent doctor" says why nvidia-smi lists none');
  };
  return {
    'guest tools': { meet: async () => requireGuestTools(config.guestTools) },
    'the container runtime': { meet: () => requireRuntime(engine, config.containerRuntime) },
    'the guard of egress': { meet: () => guard.rewrite(), canGo: true },
    ...(shown ? { 'the certificate': { meet: () => shown.require() } } : {}),
    GPUs: { meet: requireGpus },
    'the status': { meet: () => status().open(), isOptional: true },
    'the metrics': { meet: () => status().openMetrics(), isOptional: true },
  };
}

/** Creates an agent on this host's Docker and GPUs. Throws SetupError if its journal cannot be used. */
export async function createAgent(
  config: AgentConfig,
  identity: Identity,
  logger: Logger,
  isolated: Remover,
  clock: Clock = systemClock,
): Promise<Agent> {
  mkdirSync(config.stateDir, { recursive: true, mode: 0o700 });
  const made = dockerHost(config, identity.hostId, logger, clock);
  const { dataRoot, engine, gpus, quota, root, cache, host, jobs, networks, support, runtime, canary, starter } = made;
  const renewed = new RenewedIdentity(identity, config.stateDir, clock, logger);
  const runsVms = tellsOfVms(support, logger);
  const journal = new Journal(journalFile(config));
  const restoreJournal = async () => journal.restore();
  await restoreJournal();
  const etcBound = new EtcBound(engine, runtime, logger);
  const shown = config.tls ? ServerIdentity.unread(fromFiles(config.tls), clock, logger) : undefined;
  const needs = new HostNeeds(
    needsOf(config, made, shown, () => status),
    logger,
  );
  const dialProxy = config.proxySocket === null ? proxyChild() : proxyUnit(config.proxySocket);
  const portGuard = new ProxyClient(dialProxy, config.bindAddress, clock, logger, shown);
  const agent = assembleAgent({
    runtime,
    isolated,
    docker: new EngineWatch(engine, identity.hostId, config.dockerPidFile, dataRoot, clock),
    canary,
    needs,
    gpuStarter: starter,
    gpus,
    web: {
      portGuard,
      // With a host name per instance, browsers do not share cookies between instances.
      addressOf: async (instanceId) =>
        config.namePerInstance ? `${instanceId}.${config.publicAddress}` : host.publicAddress(),
      ...made.known.hostKeys.parts,
      answers: speaksHttp,
    },
    certificates: () => [...renewed.terms(), ...termOf('web', shown?.expiresAt)],
    instruments: { locate: (instanceId) => runtime.locate(instanceId), accounts: readAccounts, diskUse: diskUseOf },
    upkeep: {
      'what this host needs': () => needs.lookAgain(),
      'the canary': () => canary.lookAgain(),
      'the journal': restoreJournal,
      'files of /etc outside of disks': () => etcBound.check(),
      'the cache of images': async () => {
        await cache.collect();
      },
    },
    checks: checksOf(config, clock, gpus, () => agent.snapshot(), {
      ...made.known,
      testGpus: async () => agent.latestGpuTest(),
    }),
    upgrades: {
      folder: upgradeFolder(config),
      key: RELEASE_KEY,
      obstacles: () => upgradeObstacles(config),
      missing: () => (config.upgrades === 'off' ? [] : missingForUpgrades(config)),
      open: releaseOpener(renewed.current),
      freeBytes: diskFreeBytes,
    },
    dial: dialer(renewed.current),
    clock,
    random: Math.random,
    logger,
    journal,
    haltedRuns: new HaltedRunsFile(join(config.stateDir, 'halted-runs.json')),
    fail: (error) => {
      logger.fatal(messageOf(error));
      process.exitCode = 1;
      void whole.stop();
    },
    async prepare() {
      await engine.require(config.dockerSocket);
      await tidyUp(() => runtime.prepare(), logger);
      await needs.lookAtRequired();
      await tidyUp(() => canary.prepare(), logger);
      await tidyUp(async () => starter?.prune(), logger);
      await tidyUp(() => jobs.prune((message) => logger.warn(message)), logger);
      quota.isEnforced = await enforcesQuota(engine, config, logger);
      portGuard.start();
      // Booting the test machine takes long, and running workloads must not wait for it.
      void support.whyUnsupported().catch(() => undefined);
    },
    diskFreeGb: async () => diskFreeGb(await root()),
    describe: async () =>
      readInventory(config, gpus, { root: await root(), hasDiskQuota: quota.isEnforced, runsVms: await runsVms() }),
    boot: async () => ({ id: await readBootId(), at: Math.floor(clock.now() - uptime() * 1000) }),
  });
  const status = new StatusServer(agent, agentSocket(config), config.metrics);
  const whole: Agent = {
    ...agent,
    async start() {
      await agent.start();
      renewed.start();
      await needs.lookAtOptional();
    },
    async stop() {
      renewed.stop();
      shown?.close();
      status.close();
      portGuard.stop();
      await agent.stop();
      await withTimeout(clock, STOP_PATIENCE_MS, networks.close(), () => undefined);
    },
  };
  return whole;
}

/** Returns a function that tells whether this host runs virtual machines, and logs each new reason against it. */
function tellsOfVms(support: VmSupport, logger: Logger): () => Promise<boolean> {
  let told: string | undefined;
  return async () => {
    const reason = await support.whyUnsupported();
    if (reason !== undefined && reason !== told) logger.info(`this host runs no virtual machines: ${reason}`);
    told = reason;
    return reason === undefined;
  };
}

/** Does what a start cleans up. What is left over harms nobody, so a failure is only logged. Rejects if Docker does not answer. */
async function tidyUp(work: () => Promise<void>, logger: Logger): Promise<void> {
  await work().catch((error: unknown) => {
    if (isDockerAway(error)) throw error;
    logger.warn(`what an earlier agent has left could not be removed: ${messageOf(error)}`);
  });
}

/** Returns the checks of `gpurent-agent doctor`, which asks the running agent how it is connected. */
export function doctorsChecks(config: AgentConfig, clock: Clock = systemClock): Check[] {
  const ask = async () => JSON.parse(await askAgent(agentSocket(config), '/status')) as Snapshot;
  const gpus = gpuDriver(config, clock);
  const testGpus = async () =>
    askAgent(agentSocket(config), '/gpu-test').then(
      (text) => JSON.parse(text) as GpuTestResult,
      (error: unknown) => notTested(messageOf(error)),
    );
  return checksOf(config, clock, gpus, ask, findOut(config, clock, gpus, testGpus));
}

/** Returns a function for Docker's data root. It asks Docker only once, because a heartbeat must not wait for the answer. */
function rootOf(engine: Engine): () => Promise<string> {
  let root: string | undefined;
  return async () => (root ??= (await engine.info()).DockerRootDir);
}
