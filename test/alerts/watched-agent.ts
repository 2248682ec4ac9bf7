import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Agent } from '../../agent/assemble.js';
import { Canary } from '../../agent/canary/canary.js';
import type { GpuTestResult } from '../../agent/domain/gpu-verdict.js';
import { diskFreeGb } from '../../agent/host/inventory.js';
import { StatusServer } from '../../agent/status/status-server.js';
import { Journal } from '../../agent/journal/journal.js';
import { dialer } from '../../agent/link/dial.js';
import { enroll } from '../../agent/link/enrollment.js';
import type { Identity } from '../../agent/link/identity.js';
import { EngineWatch } from '../../agent/runtime/docker/docker-watch.js';
import { Engine } from '../../agent/runtime/docker/engine.js';
import { eventually } from '../../scripts/eventually.js';
import type { CertificateTerm } from '../../shared/network/certificate-term.js';
import { silentLogger } from '../../shared/logger.js';
import { agentOnFakes } from '../harness/agent-on-fakes.js';
import { BusyGpus } from '../harness/busy-gpus.js';
import type { TestControlPlane } from '../harness/control-plane.js';
import { DockerDouble } from '../harness/docker-double.js';
import { FakeRuntime } from '../harness/fake-runtime.js';
import { INVENTORY } from '../harness/inventory.js';
import { freePort } from '../rig/prometheus.js';
import { SmallDisk } from '../rig/small-disk.js';

/** The whole agent on a real link, with its own metrics, disks and journal; its workloads are in memory. */
export class WatchedAgent {
  /** Where renters' disks are. */
  readonly dataDisk = new SmallDisk('100g');
  /** Where the journal is. */
  readonly stateDisk = new SmallDisk('16m');
  readonly runtime: FakeRuntime;
  readonly gpus = new BusyGpus(1, 'test');
  certificates: CertificateTerm[] = [];
  /** What a test container with its GPU shows. */
  gpuShows: GpuTestResult = { kind: 'passed', reason: '' };
  docker!: DockerDouble;
  metricsAddress = '';
  private readonly folder = mkdtempSync(join(tmpdir(), 'gpurent-watched-'));
  private identity!: Identity;
  private agent!: Agent;
  private status!: StatusServer;

  private constructor(private readonly test: TestControlPlane) {
    this.runtime = new FakeRuntime(test.clock);
  }

  static async start(test: TestControlPlane): Promise<WatchedAgent> {
    const watched = new WatchedAgent(test);
    await watched.enroll({ token: await test.enrollmentToken() });
    await watched.openDocker();
    await watched.open();
    return watched;
  }

  get hostId(): string {
    return this.identity.hostId;
  }

  /** Trades a token for an identity, as `gpurent-agent enroll` does. */
  async enroll(how: { token: string; again?: boolean }): Promise<void> {
    const introduction = { inventory: await this.describe(), earlier: [] };
    this.identity = await enroll(this.folder, { controlPlane: this.test.grpcAddress, ...how }, introduction);
  }

  snapshot() {
    return this.agent.snapshot();
  }

  testGpus() {
    return this.agent.testGpus();
  }

  async openDocker(): Promise<void> {
    this.docker = await DockerDouble.listen(join(this.folder, 'docker.sock'));
  }

  async stop(): Promise<void> {
    this.status.close();
    await this.agent.stop();
    this.docker.close();
    for (const disk of [this.dataDisk, this.stateDisk]) disk.remove();
    rmSync(this.folder, { recursive: true });
  }

  private async open(): Promise<void> {
    const { clock } = this.test;
    const { runtime, gpus } = this;
    const journal = new Journal(join(this.stateDisk.path, 'journal.db'));
    journal.restore();
    const canaries = Object.assign(new FakeRuntime(clock), {
      prepare: async () => undefined,
      sshAnswers: () => runtime.sshAnswers(),
    });
    const canary = new Canary(canaries, async () => 'image:1', clock, silentLogger);
    const engine = new Engine(this.docker.socket, clock);
    const watch = new EngineWatch(engine, this.hostId, '/none', { confirm: async () => undefined }, clock);
    this.agent = agentOnFakes(
      {
        clock,
        runtime,
        gpus,
        journal,
        canary,
        gpuStarter: { run: async () => this.gpuShows, prune: async () => undefined, mark: async () => '' },
        dial: dialer(() => this.identity),
        certificates: () => this.certificates,
        diskFreeGb: () => diskFreeGb(this.dataDisk.path),
        describe: () => this.describe(),
        upkeep: { 'the canary': () => canary.lookAgain(), 'the journal': async () => journal.restore() },
      },
      {
        isAvailable: () => watch.isAvailable(),
        events: (onEvent, signal) => watch.events(onEvent, signal),
      },
    );
    await this.agent.start();
    const port = await freePort();
    this.metricsAddress = `127.0.0.1:${port}`;
    this.status = new StatusServer(this.agent, join(this.folder, 'agent.sock'), {
      host: '127.0.0.1',
      port,
    });
    await this.status.open();
    await this.status.openMetrics();
    await eventually('the agent to be connected', async () => (await this.agent.snapshot()).connected);
  }

  private async describe() {
    return { ...INVENTORY, gpus: (await this.gpus.inventory()).gpus };
  }
}
