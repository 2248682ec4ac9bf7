import Docker from 'dockerode';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SAMPLE_IMAGE, docker } from '../harness/docker.js';
import { eventually } from '../../scripts/eventually.js';

const LOCAL = fileURLToPath(new URL('../../.local/', import.meta.url));
const PATIENCE_MS = 60_000;

export interface OwnDockerOptions {
  liveRestore?: boolean;
  /** Folder of its data; otherwise one that goes with it. */
  data?: string;
  /** Folders that it looks for programs in first. */
  path?: string[];
  /** Runtimes beside its own, and where their programs are. */
  runtimes?: Record<string, string>;
}

/** crun does not run where both kinds of cgroups are mounted, as on some machines of tests: there it is shown the older kind alone. */
const WITH_ONE_KIND_OF_CGROUPS = `
if [ -d /sys/fs/cgroup/unified ]; then
  mount -t tmpfs tmpfs /mnt
  for kind in /sys/fs/cgroup/*; do
    if [ "$kind" = /sys/fs/cgroup/unified ] || ! mountpoint -q "$kind"; then continue; fi
    mkdir "/mnt/$(basename "$kind")"
    mount --bind "$kind" "/mnt/$(basename "$kind")"
  done
  mount --rbind /mnt /sys/fs/cgroup
fi
exec dockerd "$@"`;

/** A Docker Engine of the test's own beside the one that all share, to be stopped and started. Leaves the firewall alone. */
export class OwnDocker {
  readonly socket: string;
  readonly docker: Docker;
  private readonly run = mkdtempSync(join(tmpdir(), 'gpurent-own-docker-'));
  private readonly data: string;
  private daemon: ChildProcess | undefined;

  private constructor(private readonly options: OwnDockerOptions) {
    mkdirSync(LOCAL, { recursive: true });
    this.data = options.data ?? mkdtempSync(join(LOCAL, 'own-docker-'));
    this.socket = join(this.run, 'docker.sock');
    this.docker = new Docker({ socketPath: this.socket });
  }

  /** Starts one that has the sample image. */
  static async start(options: OwnDockerOptions = {}): Promise<OwnDocker> {
    const own = new OwnDocker(options);
    await own.up();
    const image = await docker.getImage(SAMPLE_IMAGE).get();
    const loading = await own.docker.loadImage(image);
    await new Promise((resolve, reject) =>
      own.docker.modem.followProgress(loading, (error) => (error ? reject(error) : resolve(null))),
    );
    return own;
  }

  async up(): Promise<void> {
    const log = openSync(join(this.run, 'log'), 'a');
    const options = [
      ['-H', `unix://${this.socket}`],
      ['--data-root', this.data],
      ['--exec-root', join(this.run, 'exec')],
      ['--pidfile', join(this.run, 'docker.pid')],
      ['--bridge', 'none'],
    ].flat();
    const flags = ['--iptables=false', '--ip6tables=false', `--live-restore=${this.options.liveRestore ?? false}`];
    for (const [name, program] of Object.entries(this.options.runtimes ?? {}))
      flags.push(`--add-runtime=${name}=${program}`);
    const path = [...(this.options.path ?? []), process.env['PATH']].join(':');
    const [program, ...before] = this.options.runtimes
      ? ['unshare', '--mount', 'sh', '-ec', WITH_ONE_KIND_OF_CGROUPS, 'dockerd']
      : ['dockerd'];
    this.daemon = spawn(program, [...before, ...options, ...flags], {
      stdio: ['ignore', log, log],
      detached: true,
      env: { ...process.env, PATH: path },
    });
    await eventually('Docker to answer', () => this.answers(), PATIENCE_MS).catch((error: unknown) => {
      throw new Error(`Docker did not start:\n${readFileSync(join(this.run, 'log'), 'utf8').slice(-2_000)}`, {
        cause: error,
      });
    });
  }

  /** As an upgrade or a shutdown of the service does. */
  async down(): Promise<void> {
    const { daemon } = this;
    if (daemon?.exitCode !== null || daemon.signalCode !== null) return;
    const ended = once(daemon, 'exit');
    daemon.kill('SIGTERM');
    await ended;
  }

  async remove(): Promise<void> {
    if (!(await this.answers())) await this.up();
    for (const { Id } of await this.docker.listContainers({ all: true })) {
      await this.docker.getContainer(Id).remove({ force: true, v: true });
    }
    await this.docker.pruneNetworks();
    await this.down();
    // With live-restore it leaves its data folder mounted upon itself.
    spawnSync('umount', ['--recursive', '--lazy', this.data]);
    rmSync(this.run, { recursive: true, force: true });
    if (this.options.data === undefined) rmSync(this.data, { recursive: true, force: true });
  }

  private async answers(): Promise<boolean> {
    return this.docker.ping().then(
      () => true,
      () => false,
    );
  }
}
