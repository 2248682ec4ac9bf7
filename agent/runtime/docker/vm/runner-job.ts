import type Docker from 'dockerode';
import { randomUUID } from 'node:crypto';
import type { ContainerCreateOptions } from 'dockerode';
import { messageOf } from '../../../../shared/coded-error.js';
import { DEADLINE_MS, statusOf, type Engine } from '../engine.js';
import { LABEL } from '../labels.js';
import { readLines } from '../log-lines.js';

/** How the containers of jobs are named. */
export const JOB_PREFIX = 'gpurent-job-';
const MEMORY_BYTES = 1024 * 1024 * 1024;
const ONE_CPU = 1_000_000_000;
const MOST_LINES = 1_000;

export interface Job {
  /** `inspect` or `probe`. */
  task: string;
  env: string[];
  host: Pick<NonNullable<ContainerCreateOptions['HostConfig']>, 'Devices' | 'GroupAdd' | 'UsernsMode'>;
  /** Other than the image's own. */
  user?: string;
}

export interface JobEnd {
  exitCode: number;
  lines: string[];
}

/** Short-lived containers that serve virtual machines, without any privilege or network. */
export class RunnerJobs {
  /** Jobs are told by their names: labels would go over to what is made of their container. */
  private readonly prefix: string;

  constructor(
    private readonly engine: Engine,
    hostId: string,
    /** Name of the runner's image. */
    private readonly image: string,
  ) {
    this.prefix = `${JOB_PREFIX}${hostId}-`;
  }

  /** Makes one, lets `use` do with it what it likes, and removes it. */
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

  /** The same with a container of any image, started or not. */
  async withContainer<T>(
    options: ContainerCreateOptions,
    use: (container: Docker.Container) => Promise<T>,
  ): Promise<T> {
    const container = await this.engine.call('create a container', DEADLINE_MS.create, (docker) =>
      // An image's own labels make no workload of it.
      docker.createContainer({ ...options, name: `${this.prefix}${randomUUID()}`, Labels: { [LABEL.host]: '' } }),
    );
    try {
      return await use(container);
    } finally {
      await this.remove(container).catch(() => undefined);
    }
  }

  /** Runs it to its end; one that takes too long is killed and throws. */
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

  /** What a crash has left. One that cannot be removed is none that anybody waits for. */
  async prune(warn: (message: string) => void): Promise<void> {
    const all = await this.engine.call('list containers', DEADLINE_MS.inspect, (docker) =>
      docker.listContainers({ all: true }),
    );
    const left = all.filter(({ Names }) => Names.some((name) => name.startsWith(`/${this.prefix}`)));
    for (const { Id } of left) {
      await this.remove(this.engine.docker.getContainer(Id)).catch((error: unknown) =>
        warn(`what was left of a look at a disk cannot be removed: ${messageOf(error)}`),
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
