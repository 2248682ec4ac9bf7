import { randomUUID } from 'node:crypto';
import { readFile, readdir, stat } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import type { ContainerCreateOptions } from 'dockerode';
import { MIB } from '../../shared/bytes.js';
import type { Clock } from '../../shared/clock.js';
import { messageOf } from '../../shared/coded-error.js';
import { plainLine } from '../../shared/plain-text.js';
import type { AgentConfig } from '../config.js';
import { isDockerAway } from '../domain/failure.js';
import { notTested, type GpuTestResult } from '../domain/gpu-verdict.js';
import type { GpuDriver } from '../host/gpus/driver.js';
import { requireEmptyImage } from '../runtime/docker/images/empty-image.js';
import { DEADLINE_MS, reasonOf, statusOf, type Engine } from '../runtime/docker/engine.js';
import { GPU_TEST_LABEL } from '../runtime/docker/labels.js';
import { OWN_IMAGES } from '../runtime/docker/images/pulled-images.js';
import type { GpuStarter } from './gpu-test.js';

const IMAGE = `${OWN_IMAGES}gpu-test:1`;
/** How long image, container and start may take together. */
const MOST_MS = 20_000;
const LONGEST_REASON = 300;
const TOOLS_DIR = '/.gpurent';
const PROGRAMS = ['nvidia-container-runtime-hook', 'nvidia-container-toolkit', 'nvidia-container-cli', 'nvidia-ctk'];
const FILES = ['/etc/nvidia-container-runtime/config.toml', '/proc/driver/nvidia/version'];
const CDI_FOLDERS = ['/etc/cdi', '/var/run/cdi'];

type HostFacts = Pick<AgentConfig, 'guestTools' | 'containerRuntime' | 'dockerPidFile'>;

/** Starts containers that have a GPU and nothing else: no network, no capability, no file of an image. */
export class DockerStarter implements GpuStarter {
  constructor(
    private readonly engine: Engine,
    private readonly gpus: Pick<GpuDriver, 'attachment'>,
    private readonly hostId: string,
    private readonly host: HostFacts,
    private readonly clock: Clock,
  ) {}

  async run(uuid: string): Promise<GpuTestResult> {
    const deadline = this.clock.monotonic() + MOST_MS;
    const leftMs = () => Math.max(deadline - this.clock.monotonic(), 1);
    const name = `gpurent-gpu-test-${randomUUID()}`;
    const options = { name, ...this.optionsFor(uuid) };
    const progress = { isCreated: false };
    try {
      await this.prune();
      await requireEmptyImage(this.engine, IMAGE);
      const container = await this.engine.call('create a container', leftMs(), (docker) =>
        docker.createContainer(options),
      );
      progress.isCreated = true;
      await this.engine.call('start a container with a GPU', leftMs(), () => container.start());
      return { kind: 'passed', reason: '' };
    } catch (error) {
      return await this.judge(error, progress.isCreated);
    } finally {
      // A call that Docker has not answered can still take effect; what it leaves is removed before the next test.
      await this.prune().catch(() => undefined);
    }
  }

  /** Removes the test containers of this host. Rejects if Docker does not list or remove them. */
  async prune(): Promise<void> {
    const filters = { label: [`${GPU_TEST_LABEL}=${this.hostId}`] };
    const left = await this.engine.call('list containers', DEADLINE_MS.inspect, (docker) =>
      docker.listContainers({ all: true, filters }),
    );
    for (const { Id } of left) {
      const removed = this.engine.call('remove a container', MOST_MS, (docker) =>
        docker.getContainer(Id).remove({ force: true, v: true }),
      );
      await removed.catch((error: unknown) => {
        if (statusOf(error) !== 404 && statusOf(error) !== 409) throw error;
      });
    }
  }

  async mark(): Promise<string> {
    const { ServerVersion } = await this.engine.info();
    const folders = (process.env['PATH'] ?? '').split(delimiter);
    const programs = folders.flatMap((folder) => PROGRAMS.map((name) => join(folder, name)));
    const described = await Promise.all(CDI_FOLDERS.map((folder) => filesOf(folder)));
    const { dockerPidFile } = this.host;
    const files = [dockerPidFile, ...programs, ...FILES, ...described.flat()];
    return JSON.stringify([ServerVersion, ...(await Promise.all(files.map((file) => stateOf(file))))]);
  }

  /** Judges why the container did not start. Before it was created, and while Docker itself fails, that says nothing of GPUs. */
  private async judge(error: unknown, isCreated: boolean): Promise<GpuTestResult> {
    const reason = plainLine(statusOf(error) === undefined ? messageOf(error) : reasonOf(error), LONGEST_REASON);
    const isGone = statusOf(error) === 404 && /no such container/i.test(reason);
    const isSilent = isDockerAway(error) && !(await this.engine.isAvailable());
    const isKnown = statusOf(error) !== undefined || isDockerAway(error);
    if (!isCreated || isGone || isSilent || !isKnown) return notTested(`no test container could be made: ${reason}`);
    return { kind: 'failed', reason };
  }

  private optionsFor(uuid: string): ContainerCreateOptions {
    const { env, deviceRequests } = this.gpus.attachment([uuid]);
    const { containerRuntime, guestTools } = this.host;
    return {
      Image: IMAGE,
      Entrypoint: [`${TOOLS_DIR}/bin/sh`, '-c', 'exit 0'],
      Env: env,
      Labels: { [GPU_TEST_LABEL]: this.hostId },
      HostConfig: {
        ...(containerRuntime === null ? {} : { Runtime: containerRuntime }),
        NetworkMode: 'none',
        ReadonlyRootfs: true,
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges'],
        Mounts: [{ Type: 'bind', Source: guestTools, Target: TOOLS_DIR, ReadOnly: true }],
        DeviceRequests: deviceRequests,
        Memory: 128 * MIB,
        MemorySwap: 128 * MIB,
        NanoCpus: 1_000_000_000,
        PidsLimit: 64,
        LogConfig: { Type: 'none', Config: {} },
        RestartPolicy: { Name: 'no' },
      },
    };
  }
}

/** Returns the files of a folder; none if it is not there. */
async function filesOf(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => []);
  return names.filter((name) => name.includes('nvidia')).map((name) => join(folder, name));
}

/** Returns which version of a file is there; null: none. */
async function stateOf(file: string): Promise<string | null> {
  // Files of the kernel are new at each look.
  if (file.startsWith('/proc/')) return readFile(file, 'utf8').catch(() => null);
  return stat(file).then(
    ({ ctimeMs, size }) => `${ctimeMs} ${size}`,
    () => null,
  );
}
