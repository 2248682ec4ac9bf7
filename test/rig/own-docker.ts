import Docker from 'dockerode';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SAMPLE_IMAGE, docker } from '../harness/docker.js';
import { eventually } from '../../scripts/eventually.js';

const LOCAL = fileURLToPath(new URL('../../.local/', import.meta.url));
const PATIENCE_MS = 180_000;

export interface OwnDockerOptions {
  liveRestore?: boolean;
  /** Folder of its data; otherwise one that goes with it. */
  data?: string;
  /** Folders that it looks for programs in first. */
  path?: string[];
  /** Runtimes beside its own, and where their programs are. */
  runtimes?: Record<string, string>;
  /** Whether root in its containers is nobody on this machine; its data is where such a nobody may pass. */
  usernsRemap?: boolean;
}

/** The first id of the host that its containers have, where user namespaces are remapped. */
export const FIRST_REMAPPED_ID = 100_000;
/** With an /etc of its own, so that the machine of the tests gets no account. */
const WITH_REMAPPED_ACCOUNT = `
[ -e "$RUN/etc" ] || cp -a /etc "$RUN/etc"
mount --bind "$RUN/etc" /etc
grep -q ^dockremap: /etc/passwd || echo dockremap:x:999:999::/nonexistent:/usr/sbin/nologin >>/etc/passwd
grep -q ^dockremap: /etc/group || echo dockremap:x:999: >>/etc/group
for file in subuid subgid; do echo dockremap:${FIRST_REMAPPED_ID}:65536 >/etc/$file; done
exec dockerd "$@"`;

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
    const parent = options.usernsRemap === undefined ? LOCAL : '/var/tmp/';
    this.data = options.data ?? mkdtempSync(join(parent, 'own-docker-'));
    if (options.usernsRemap !== undefined) for (const folder of [this.data, this.run]) chmodSync(folder, 0o711);
    this.socket = join(this.run, 'docker.sock');
    this.docker = new Docker({ socketPath: this.socket });
  }

  /** Starts one that has the sample image. */
  static async start(options: OwnDockerOptions = {}): Promise<OwnDocker> {
    const own = new OwnDocker(options);
    await own.up();
    await own.give(SAMPLE_IMAGE);
    return own;
  }

  /** Copies an image to it from the one that all tests share. */
  async give(name: string): Promise<void> {
    const loading = await this.docker.loadImage(await docker.getImage(name).get());
    await new Promise((resolve, reject) =>
      this.docker.modem.followProgress(loading, (error) => (error ? reject(error) : resolve(null))),
    );
  }

  /** `dataRoot`: another one than before. */
  async up(changes: { usernsRemap?: boolean; dataRoot?: string } = {}): Promise<void> {
    const { runtimes = {}, ...given } = this.options;
    const { usernsRemap, dataRoot } = { usernsRemap: given.usernsRemap, dataRoot: this.data, ...changes };
    const log = openSync(join(this.run, 'log'), 'a');
    const options = [
      ['-H', `unix://${this.socket}`],
      ['--data-root', dataRoot],
      ['--exec-root', join(this.run, 'exec')],
      ['--pidfile', join(this.run, 'docker.pid')],
      ['--bridge', 'none'],
    ].flat();
    const flags = ['--iptables=false', '--ip6tables=false', `--live-restore=${this.options.liveRestore ?? false}`];
    for (const [name, program] of Object.entries(runtimes)) flags.push(`--add-runtime=${name}=${program}`);
    if (usernsRemap) flags.push('--userns-remap=default');
    const path = [...(this.options.path ?? []), process.env['PATH']].join(':');
    const prelude = this.options.runtimes ? WITH_ONE_KIND_OF_CGROUPS : usernsRemap ? WITH_REMAPPED_ACCOUNT : undefined;
    const [program, ...before] = prelude ? ['unshare', '--mount', 'sh', '-ec', prelude, 'dockerd'] : ['dockerd'];
    this.daemon = spawn(program, [...before, ...options, ...flags], {
      stdio: ['ignore', log, log],
      detached: true,
      env: { ...process.env, PATH: path, RUN: this.run },
    });
    await eventually('Docker to answer', () => this.answers(), PATIENCE_MS).catch((error: unknown) => {
      throw new Error(`Docker did not start:\n${readFileSync(join(this.run, 'log'), 'utf8').slice(-2_000)}`, {
        cause: error,
      });
    });
  }

  /** It takes requests and answers none, until it goes on. */
  hang(): void {
    this.daemon?.kill('SIGSTOP');
  }

  goOn(): void {
    this.daemon?.kill('SIGCONT');
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
