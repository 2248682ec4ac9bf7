import type Docker from 'dockerode';
import { randomUUID } from 'node:crypto';
import type { ContainerCreateOptions } from 'dockerode';
import { messageOf } from '../../../../shared/coded-error.js';
import { DEADLINE_MS, statusOf, type Engine } from '../engine.js';
import { LABEL } from '../labels.js';
import { readLines } from '../containers/log-lines.js';

/** Prefix of the names of job containers. */
export const JOB_PREFIX = 'gpurent-job-';
const MEMORY_BYTES = 1024 * 1024 * 1024;
const ONE_CPU = 1_000_000_000;
const MOST_LINES = 1_000;

export interface Job {
  /** `inspect` or `probe`. */
  task: string;
  env: string[];
  host: Pick<NonNullable<ContainerCreateOptions['HostConfig']>, 'Devices' | 'GroupAdd' | 'UsernsMode'>;
  /** User, if not the image's own. */
  user?: string;
}

export interface JobEnd {
  exitCode: number;
  lines: string[];
}

/** Runs short-lived containers for virtual machines, without any privilege or network. */
export class RunnerJobs {
  /** Jobs are recognized by their names: labels would also be on an image that is made from their container. */
  private readonly prefix: string;

  constructor(
    private readonly engine: Engine,
    hostId: string,
    /** Name of the runner's image. */
    private readonly image: string,
  ) {
    this.prefix = `${JOB_PREFIX}${hostId}-`;
  }

  /** Creates the container of a job, passes it to `use`, and removes it. */
  with<T>(job: Job, use: (container: Docker.Container) => Promise<T>): Promise<T> {
    const { task, env, host, user } = job;
    return this.withContainer(
      {
        Image: this.image,
        ...(user === undefined ? {} : { User: user }),
        Cmd: [task],
        Env: env,
        HostConfig: {
          ...host,
          Init: true,
          NetworkMode: 'none',
          CapDrop: ['ALL'],
          SecurityOpt: ['no-new-privileges'],
          Memory: MEMORY_BYTES,
          MemorySwap: MEMORY_BYTES,
          NanoCpus: ONE_CPU,
          PidsLimit: 256,
        },
      },
      use,
    );
  }

  /** Does the same with a container of any image, started or not. */
  async withContainer<T>(
    options: ContainerCreateOptions,
    use: (container: Docker.Container) => Promise<T>,
  ): Promise<T> {
    const container = await this.engine.call('create a container', DEADLINE_MS.create, (docker) =>
      // Overrides a label of the image, so that the container does not count as a workload.
      docker.createContainer({ ...options, name: `${this.prefix}${randomUUID()}`, Labels: { [LABEL.host]: '' } }),
    );
    try {
      return await use(container);
    } finally {
      await this.remove(container).catch(() => undefined);
    }
  }

  /**
   * Runs the container to its end. Throws Failure DOCKER_TIMEOUT after `deadlineMs`; removing the container then kills
   * it.
   */
  async run(container: Docker.Container, deadlineMs: number): Promise<JobEnd> {
    await this.engine.call('start a container', DEADLINE_MS.start, () => container.start());
    const { StatusCode } = (await this.engine.call('end a container', deadlineMs, () => container.wait())) as {
      StatusCode: number;
    };
    const output = await this.engine.call('read the log', DEADLINE_MS.inspect, () =>
      container.logs({ follow: false, stdout: true, stderr: true, timestamps: true, tail: MOST_LINES }),
    );
    return { exitCode: StatusCode, lines: readLines(output).map(({ text }) => text) };
  }

  /** Removes containers of jobs that a crash has left. Nobody waits for them, so a failure is only logged. */
  async prune(warn: (message: string) => void): Promise<void> {
    const all = await this.engine.call('list containers', DEADLINE_MS.inspect, (docker) =>
      docker.listContainers({ all: true }),
    );
    const left = all.filter(({ Names }) => Names.some((name) => name.startsWith(`/${this.prefix}`)));
    for (const { Id } of left) {
      await this.remove(this.engine.docker.getContainer(Id)).catch((error: unknown) =>
        warn(`a leftover job container could not be removed: ${messageOf(error)}`),
      );
    }
  }

  private async remove(container: Docker.Container): Promise<void> {
    await this.engine
      .call('remove a container', DEADLINE_MS.remove, () => container.remove({ force: true, v: true }))
      .catch((error: unknown) => {
        if (statusOf(error) !== 404) throw error;
      });
  }
}
