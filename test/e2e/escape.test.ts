import { execFileSync, spawnSync } from 'node:child_process';
import { createServer, connect, type AddressInfo, type Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { statusIs } from '../harness/control-plane.js';
import { docker } from '../harness/docker.js';
import { eventually } from '../../scripts/eventually.js';
import { Outside } from '../rig/outside.js';
import { RealPlatform, RealRenter } from '../harness/real.js';

const LONG_MS = 180_000;
/** One for each, with half of the processors: what starts and ends thousands of processes needs them. */
const GPUS = 2;
const METADATA = '169.254.169.254';
/** Private, too, and the host's owner lets renters reach it. */
const ALLOWED = '10.88.8.8';
const PRIVATE = ['10.99.99.99', '172.29.9.9', '192.168.199.9', '100.66.6.6'];

let outside: Outside;
let service: Server;
let servicePort: number;
let real: RealPlatform;
let renter: RealRenter;
let mine: InstanceBody;
let other: RealRenter;
let neighbour: InstanceBody;

beforeAll(async () => {
  outside = await Outside.with([METADATA, ALLOWED, ...PRIVATE]);
  service = createServer((socket) => socket.end('reached\n'));
  await new Promise<void>((resolve) => service.listen(0, Outside.HOST, resolve));
  servicePort = (service.address() as AddressInfo).port;
  real = await RealPlatform.start({
    gpus: GPUS,
    agentEnv: { GPURENT_AGENT_EGRESS_MBIT: '8', GPURENT_AGENT_EGRESS_ALLOW: '10.88.8.0/24' },
  });
  renter = await RealRenter.on(real);
  other = await RealRenter.on(real);
  [mine, neighbour] = await Promise.all(
    [renter, other].map(async (each) => {
      const { id } = await each.deploy();
      return statusIs(each.api, id, 'running', LONG_MS);
    }) as [Promise<InstanceBody>, Promise<InstanceBody>],
  );
});
afterAll(async () => {
  await real.stop();
  service.close();
  outside.close();
});

const inside = (command: string) => renter.ssh(mine, `${command} 2>&1; echo " exit $?"`);
/** What a renter's connection to a port of the outside hears. */
const reach = (host: string, port: number, seconds = 3) => inside(`nc -w ${seconds} ${host} ${port} </dev/null`);
/** Where something is to be heard, a busy machine has its time. */
const reaches = (host: string, port: number) => reach(host, port, 30);
const addressOf = async ({ id }: InstanceBody) => {
  const { NetworkSettings } = await docker.getContainer(`gpurent-${id}`).inspect();
  const [network] = Object.values(NetworkSettings.Networks);
  return { own: network?.IPAddress ?? '', host: network?.Gateway ?? '' };
};

/** Packets of renters that were above what they may send together. */
function dropped(): number {
  const [, , rule = ''] = execFileSync('iptables', ['--wait', '10', '-nvxL', 'GPURENT-FORWARD'], {
    encoding: 'utf8',
  }).split('\n');
  return Number(rule.trim().split(' ')[0]);
}

async function processesOf({ id }: InstanceBody): Promise<number> {
  const { pids_stats } = await docker.getContainer(`gpurent-${id}`).stats({ stream: false });
  return pids_stats?.current ?? 0;
}

/** What a connection from the host hears first. */
function fromHere(host: string, port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, timeout: 30_000 });
    socket.on('error', reject);
    socket.on('timeout', () => socket.destroy(new Error('nothing was heard')));
    socket.on('data', (data) => {
      resolve(data.toString());
      socket.destroy();
    });
  });
}

describe('A renter', () => {
  it('reaches the Internet', async () => {
    expect(await reaches(Outside.PUBLIC, 80)).toBe('reached\n exit 0');
  });

  it.each([METADATA, ...PRIVATE])('does not reach %s, which the host does', async (address) => {
    expect(await fromHere(address, 80)).toBe('reached\n');
    expect(await reach(address, 80)).not.toContain('reached');
  });

  it('reaches a private network that the owner allows', async () => {
    expect(await reaches(ALLOWED, 80)).toBe('reached\n exit 0');
  });

  it('sends no mail to the Internet', async () => {
    expect(await fromHere(Outside.PUBLIC, 25)).toBe('reached\n');
    expect(await reach(Outside.PUBLIC, 25)).not.toContain('reached');
  });

  it('leaves the agent its part of the line, however much it sends', async () => {
    expect(dropped()).toBe(0);
    // The agent may write its rules anew, which count from zero then.
    await eventually(
      'packets above its part',
      async () => {
        await inside(`dd if=/dev/zero bs=1M count=5 | nc ${Outside.PUBLIC} 80`);
        return dropped() > 0;
      },
      LONG_MS,
    );
  });

  it('does not reach what the host itself serves, by any of its addresses', async () => {
    expect(await fromHere(Outside.HOST, servicePort)).toBe('reached\n');
    const { host } = await addressOf(mine);
    const atGateway = createServer((socket) => socket.end('reached\n'));
    await new Promise<void>((resolve) => atGateway.listen(0, host, resolve));
    const { port } = atGateway.address() as AddressInfo;
    expect(await fromHere(host, port)).toBe('reached\n');
    expect(await reach(host, port)).not.toContain('reached');
    expect(await reach(Outside.HOST, servicePort)).not.toContain('reached');
    atGateway.close();
  });

  it('does not reach a neighbour, who can be reached', async () => {
    const { own } = await addressOf(neighbour);
    expect(await fromHere(own, 22_022)).toContain('SSH-2.0');
    expect(await reach(own, 22_022)).not.toContain('SSH-2.0');
  });

  it('has no IPv6 to go around all that', async () => {
    expect(await inside('cat /proc/net/if_inet6')).not.toMatch(/(eth|net)\d/);
  });

  it('stays kept in while Docker moves its own rules to the front', async () => {
    // As Docker does, one after the other, whenever it creates a network.
    execFileSync('iptables', ['--wait', '10', '-D', 'FORWARD', '-j', 'DOCKER-USER']);
    const heard = await reach(METADATA, 80);
    execFileSync('iptables', ['--wait', '10', '-I', 'FORWARD', '-j', 'DOCKER-USER']);
    expect(heard).not.toContain('reached');
    expect(await reaches(Outside.PUBLIC, 80)).toBe('reached\n exit 0');
  });

  it('is kept in again when somebody has wiped the host’s rules', async () => {
    // The agent may write its rules anew at this very moment.
    await eventually(
      'a way out',
      async () => {
        for (const chain of ['GPURENT-FORWARD', 'GPURENT-EGRESS'])
          execFileSync('iptables', ['--wait', '10', '-F', chain]);
        return (await reach(METADATA, 80)).includes('reached');
      },
      LONG_MS,
    );
    await real.upkeep();
    expect(await reach(METADATA, 80)).not.toContain('reached');
  });

  it('is kept in again when somebody has put other rules before the agent’s', async () => {
    const rules = [
      // The agent's own may stand in either, as Docker has left them.
      ['FORWARD', '-i', 'gpr+', '-j', 'ACCEPT'],
      ['DOCKER-USER', '-i', 'gpr+', '-j', 'ACCEPT'],
      ['INPUT', '-i', 'gpr+', '-j', 'ACCEPT'],
    ];
    const takeAway = () => rules.forEach((rule) => spawnSync('iptables', ['-D', ...rule]));
    // The agent may be at work on its rules at this very moment.
    await eventually(
      'a way out',
      async () => {
        takeAway();
        for (const rule of rules) execFileSync('iptables', ['-I', ...rule]);
        const heard = [await reach(METADATA, 80), await reach(Outside.HOST, servicePort)];
        return heard.every((said) => said.includes('reached'));
      },
      LONG_MS,
    );
    await real.upkeep();
    expect(await reach(METADATA, 80)).not.toContain('reached');
    expect(await reach(Outside.HOST, servicePort)).not.toContain('reached');
    takeAway();
  });

  it('finds no Docker, no device and no process of the host', async () => {
    expect(await inside('find / -xdev -name "docker*.sock"')).toBe('exit 0');
    expect(await inside('ls /dev | grep -E "^(sd|vd|nvme|loop|mem|kmsg|fuse|kvm)"')).toBe('exit 1');
    expect(await inside('ps -o comm | grep -E "dockerd|containerd|node"')).toBe('exit 1');
    expect(await inside('touch /.gpurent/init')).toMatch(/Read-only file system[^]*exit 1/);
  });

  it('cannot mount, make devices, or load anything into the kernel', async () => {
    expect(await inside('mkdir -p /mnt && mount -t tmpfs none /mnt')).toMatch(/exit (1|32|255)/);
    expect(await inside('mount -o remount,rw /proc/sys')).toMatch(/exit (1|32|255)/);
    expect(await inside('mknod /disk b 8 0')).toMatch(/Operation not permitted[^]*exit 1/);
    expect(await inside('echo 1 > /proc/sys/kernel/panic')).toMatch(/exit [12]/);
    expect(await inside('unshare -r true')).not.toBe('exit 0');
    expect(await inside('chroot /proc/1/root true')).not.toContain('lib/modules');
  });

  it('gains nothing by setuid', async () => {
    expect(await inside('grep NoNewPrivs /proc/self/status')).toContain('1');
    expect(await inside('grep -h CapBnd /proc/self/status | cut -f 2')).toBe('00000000a00405fb\n exit 0');
  });

  it('has only so many processes, and a neighbour notices nothing', async () => {
    // Each waits for a pipe that nobody opens: a shell of its own, without the cost of a program.
    const bomb = 'mkfifo /gate; i=0; while [ $i -lt 9000 ]; do read -r line </gate & i=$((i + 1)); done';
    await inside(`(${bomb}) >/dev/null 2>&1 &`);
    await eventually('the limit', async () => (await processesOf(mine)) > 4_000, 2 * LONG_MS);
    expect(await other.ssh(neighbour, 'echo here')).toBe('here');
    expect(await processesOf(mine)).toBeLessThanOrEqual(4_096);
    await other.destroy(neighbour.id);
    await renter.destroy(mine.id);
  });
});
