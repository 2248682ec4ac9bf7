import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { eventually } from '../../scripts/eventually.js';

const run = promisify(execFile);
const OUTPUT = { maxBuffer: 64 * 1024 * 1024 };
const BOOT_MS = 300_000;
const IMAGE = 'gpurent/systemd:1';
/** The same with nginx, Caddy, Prometheus, nftables and ufw; at night only. */
export const SERVICES_IMAGE = 'gpurent/services:1';
/** What systemd and a Docker of its own need. */
const PRIVILEGES = ['SYS_ADMIN', 'NET_ADMIN', 'SYS_PTRACE', 'SYSLOG', 'MKNOD'].flatMap((name) => ['--cap-add', name]);
const ROOMS = ['/run', '/run/lock', '/tmp'].flatMap((path) => ['--tmpfs', path]);

/** The release that `scripts/test` has made. */
export function releaseTarball(): string {
  const folder = process.env['GPURENT_TEST_RELEASE'] ?? '.';
  const name = readdirSync(folder).find((file) => file.endsWith('.tar.gz'));
  if (name === undefined) throw new Error(`there is no release in ${folder}: give its folder as GPURENT_TEST_RELEASE`);
  return join(folder, name);
}

/** A machine of its own with systemd as its first process, a Docker of its own, and no route out. */
export class SystemdMachine {
  private constructor(private readonly name: string) {}

  static async boot(image = IMAGE): Promise<SystemdMachine> {
    const name = `gpurent-machine-${randomUUID().slice(0, 8)}`;
    const seams = ['--security-opt', 'seccomp=unconfined', '--cgroupns', 'host', '--stop-signal', 'SIGRTMIN+3'];
    // Read-only is the folder, not what is mounted in it: so systemd mounts no hierarchy that this machine does not have, for then
    // containerd would look in vain for where it is, and nobody would hear that a container has run out of memory.
    const folders = ['-v', '/sys/fs/cgroup:/sys/fs/cgroup:ro', '-v', `${name}:/var/lib/docker`];
    // Docker switches IPv6 off where its network has none, and with it loopback's.
    const ipv6 = ['all', 'lo'].map((name) => `net.ipv6.conf.${name}.disable_ipv6=0`);
    // Docker lets everybody listen below 1024, which no machine does.
    const lowPorts = 'net.ipv4.ip_unprivileged_port_start=1024';
    // The Docker in it cannot switch this on, and a new network takes it from the machine that runs the tests.
    const forwarding = 'net.ipv4.ip_forward=1';
    // Not the default bridge: another Docker of the tests may have taken that away.
    await run('docker', ['network', 'create', name]);
    const options = [
      '--detach',
      '--name',
      name,
      '--network',
      name,
      ...PRIVILEGES,
      ...seams,
      ...ROOMS,
      ...[...ipv6, lowPorts, forwarding].flatMap((setting) => ['--sysctl', setting]),
      ...folders,
    ];
    await run('docker', ['run', ...options, image, '/sbin/init']);
    const machine = new SystemdMachine(name);
    await machine.up();
    return machine;
  }

  /** What a shell script printed; rejects with what it complained of. */
  async sh(script: string): Promise<string> {
    const { stdout } = await run('docker', ['exec', this.name, 'bash', '-ec', script], OUTPUT);
    return stdout.trim();
  }

  /** Whether it came to its end well, and all that it said. */
  async attempt(script: string): Promise<{ ok: boolean; said: string }> {
    return this.sh(`{ ${script}\n} 2>&1`).then(
      (said) => ({ ok: true, said }),
      (error: unknown) => ({ ok: false, said: (error as { stdout: string }).stdout }),
    );
  }

  /** What a shell script of a user said on both its outputs, and whether it came to its end well. */
  async tell(script: string, user: string): Promise<{ ok: boolean; said: string; errors: string }> {
    const done = run('docker', ['exec', '--user', user, this.name, 'bash', '-c', script], OUTPUT);
    return done.then(
      ({ stdout, stderr }) => ({ ok: true, said: stdout.trim(), errors: stderr }),
      (error: unknown) => {
        const { stdout, stderr } = error as { stdout: string; stderr: string };
        return { ok: false, said: stdout.trim(), errors: stderr };
      },
    );
  }

  /** Copies a file into a folder of it. */
  async copy(file: string, folder: string): Promise<void> {
    await run('docker', ['cp', file, `${this.name}:${folder}/`]);
  }

  /** Unpacks a tarball into a new folder. */
  async unpack(tarball: string, folder: string): Promise<void> {
    await this.sh(`mkdir -p ${folder}`);
    await pipe(['cat', tarball], ['docker', 'exec', '-i', this.name, 'tar', '-xz', '-C', folder]);
  }

  /** Gives its Docker an image that the Docker of the tests has. */
  async load(image: string): Promise<void> {
    await pipe(['docker', 'save', image], ['docker', 'exec', '-i', this.name, 'docker', 'load', '--quiet']);
  }

  /** Down and up again: everything that ran there ends, what is on its disks stays. */
  async reboot(): Promise<void> {
    await run('docker', ['restart', '--time', '60', this.name]);
    await this.up();
  }

  async remove(): Promise<void> {
    await run('docker', ['rm', '--force', '--volumes', this.name]).catch(() => undefined);
    await run('docker', ['volume', 'rm', '--force', this.name]).catch(() => undefined);
    await run('docker', ['network', 'rm', this.name]).catch(() => undefined);
  }

  private async up(): Promise<void> {
    await eventually(
      'the machine',
      () =>
        this.sh('systemctl is-system-running').then(
          (said) => said === 'running',
          () => false,
        ),
      BOOT_MS,
    );
    await this.sh('ip route delete default');
  }
}

/** One program's output into another. */
async function pipe([from = '', ...args]: string[], [to = '', ...more]: string[]): Promise<void> {
  const source = spawn(from, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const target = spawn(to, more, { stdio: [source.stdout, 'ignore', 'inherit'] });
  const end = (child: typeof target, what: string) =>
    new Promise<void>((resolve, reject) => {
      child.on('error', reject);
      child.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`${what} ended with ${code}`))));
    });
  await Promise.all([end(source as never, from), end(target, to)]);
}
