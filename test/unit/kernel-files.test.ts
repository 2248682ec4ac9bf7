import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  btrfsDevice,
  numberNamed,
  openConnections,
  parseCgroups,
  parseCpuMax,
  parseInterfaces,
  parseTcpCounters,
  wholeNumber,
} from '../../agent/domain/kernel-files.js';
import { parseUse } from '../../agent/host/nvidia/use.js';
import { readAccounts } from '../../agent/measurements/accounts.js';
import type { LocatedWorkload } from '../../agent/runtime/workload.js';

const ID = 'f'.repeat(64);

describe('the cgroups of a process', () => {
  it('are read of both versions, also where version 2 is mounted without controllers', () => {
    const path = `/system.slice/docker-${ID}.scope`;
    expect(parseCgroups(`0::${path}\n`, ID)).toEqual({ version: 2, cpu: path, cpuAccount: path, memory: path });
    const docker = `/docker/${ID}`;
    const both = `12:memory:${docker}\n4:cpu,cpuacct:${docker}\n1:name=systemd:${docker}\n0::${docker}\n`;
    expect(parseCgroups(both, ID)).toEqual({ version: 1, cpu: docker, cpuAccount: docker, memory: docker });
  });

  it.each([
    ['of another container', `0::/docker/${'a'.repeat(64)}\n`],
    ['outside of what the agent sees', `0::/../../docker/${ID}\n`],
    ['up from there', `0::/docker/${ID}/../../x\n`],
    ['with a name that nobody has given', `0::/docker/${ID}/a b\n`],
    ['that are no text of the kernel', '\0\0\0'],
    ['that are empty', ''],
  ])('%s are none', (_, text) => {
    expect(parseCgroups(text, ID)).toBeUndefined();
  });
});

describe('numbers', () => {
  it.each([
    ['12\n', 12],
    ['max\n', null],
    ['-1', null],
    ['1e9', null],
    ['NaN', null],
    ['', null],
    ['99999999999999999999', null],
    ['9007199254740993', null],
  ])('%j is %s', (text, value) => {
    expect(wholeNumber(text)).toBe(value);
  });

  it('are found by their whole names', () => {
    const text = 'xusage_usec 1\nusage_usec 25\nusage_usec_extra 3\n';
    expect(numberNamed(text, 'usage_usec')).toBe(25);
    expect(numberNamed(text, 'usage')).toBeNull();
    expect(numberNamed('inactive_file x\n', 'inactive_file')).toBeNull();
  });

  it('limit the processor, or do not', () => {
    expect(parseCpuMax('150000 100000\n')).toBe(1_500);
    expect(parseCpuMax('max 100000\n')).toBeNull();
    expect(parseCpuMax('100000 0\n')).toBeNull();
    expect(parseCpuMax('')).toBeNull();
  });
});

const HEADER = 'Inter-|   Receive                |  Transmit\n face |bytes    packets\n';

describe('interfaces', () => {
  it('count together, without loopback', () => {
    const text = `${HEADER}    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0\n  eth0: 100 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n  eth1:5 1 0 0 0 0 0 0 3 1 0 0 0 0 0 0\n`;
    expect(parseInterfaces(text)).toEqual({ inBytes: 105, outBytes: 10 });
  });

  it.each([['', HEADER, `${HEADER}  eth0: 1 2\n`, `${HEADER}  eth0: x 1 0 0 0 0 0 0 7\n`, `${HEADER}nonsense\n`]])(
    'that cannot be read are not measured: %j',
    (...texts) => {
      for (const text of texts) expect(parseInterfaces(text)).toBeNull();
    },
  );
});

/** A line of /proc/net/tcp. */
const socket = (local: string, state: string) =>
  `   0: ${local} 0100007F:C350 ${state} 00000000:00000000 00:00000000 00000000     0        0 1 1`;

it('connections are counted by their local port, without those that listen', () => {
  const tcp = ['  sl  local_address', socket('0100007F:5606', '01'), socket('00000000:5606', '0A')].join('\n');
  const tcp6 = [
    `   1: ${'0'.repeat(32)}:5606 ${'0'.repeat(32)}:C350 06 x`,
    socket('0100007F:0016', '01'),
    'garbage',
  ].join('\n');
  expect(openConnections([tcp, tcp6], new Set([0x5606]))).toHaveLength(1);
  expect(openConnections([tcp, tcp6], new Set())).toEqual([]);
});

it('connections that were opened, and that are open, are named by the line above', () => {
  const text = 'Ip: Forwarding\nIp: 1\nTcp: RtoMin ActiveOpens PassiveOpens CurrEstab\nTcp: 200 7 42 1\n';
  expect(parseTcpCounters(text)).toEqual({ openedToIt: 42, openedByIt: 7, open: 1 });
  for (const other of ['', 'Tcp: RtoMin\nTcp: 200\n', 'Tcp: PassiveOpens\n', 'Tcp: PassiveOpens\nTcp: x\n'])
    expect(parseTcpCounters(other)).toEqual({ openedToIt: null, openedByIt: null, open: null });
});

it('the device of a btrfs is that of the nearest mount', () => {
  const mounts = [
    '22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw',
    '63 22 0:38 / /var/lib/docker rw,relatime shared:4 - btrfs /dev/mapper/data rw,subvolid=5,subvol=/',
    '64 63 0:39 / /var/lib/docker/with\\040space rw - btrfs /dev/sdc rw',
    '65 22 0:40 / /srv rw - btrfs /dev/sdd rw',
    '66 22 8:3 / /srv rw - xfs /dev/sde rw',
    'garbage',
  ].join('\n');
  const devices = {
    '/var/lib/docker/btrfs/subvolumes/x': '/dev/mapper/data',
    '/var/lib/docker': '/dev/mapper/data',
    '/var/lib/docker/with space/x': '/dev/sdc',
    '/var/lib/dockers': undefined,
    '/srv/x': undefined,
    '/x': undefined,
  };
  for (const [path, device] of Object.entries(devices))
    expect([path, btrfsDevice(mounts, path)]).toEqual([path, device]);
  expect(btrfsDevice('', '/x')).toBeUndefined();
});

describe('what nvidia-smi says of use', () => {
  const [one, other] = ['GPU-0c2d8e5f-70b1-4f4e-9b36-6a4d7a1e0001', 'GPU-0c2d8e5f-70b1-4f4e-9b36-6a4d7a1e0002'];

  it('is read by UUID in its order, with null for what a driver does not know', () => {
    const use = parseUse(`${other}, 87, 1024, 81559, 412.63, 61\n${one}, [N/A], [N/A], 24564, [Not Supported], 40\n`);
    expect([...use]).toEqual([
      [
        other,
        {
          usePercent: 87,
          memoryUsedBytes: 1024 ** 3,
          memoryTotalBytes: 81_559 * 1024 ** 2,
          powerWatts: 413,
          temperatureCelsius: 61,
        },
      ],
      [
        one,
        {
          usePercent: null,
          memoryUsedBytes: null,
          memoryTotalBytes: 24_564 * 1024 ** 2,
          powerWatts: null,
          temperatureCelsius: 40,
        },
      ],
    ]);
  });

  it('is nothing where it is an error, and no percent is above 100', () => {
    expect(parseUse('Unable to determine the device handle for GPU: GPU is lost\n').size).toBe(0);
    expect(parseUse('').size).toBe(0);
    expect(parseUse(`${one}, 255, 1e9, -1, NaN, ${'9'.repeat(30)}`).get(one)).toEqual({
      usePercent: 100,
      memoryUsedBytes: null,
      memoryTotalBytes: null,
      powerWatts: null,
      temperatureCelsius: null,
    });
  });
});

describe('the accounts of a workload', () => {
  let folder: string;
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'gpurent-accounts-'))));
  afterEach(() => rmSync(folder, { recursive: true }));

  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  const port = { hostPort: 40_001, guarded: false, link: null };
  const located = (ports: object[] = [{ ...port, port: 80, protocol: 'tcp' }]) =>
    ({
      workload: { ports },
      pid: 7,
      containerId: ID,
      sshContainerPort: 22_022,
      disk: null,
    }) as unknown as LocatedWorkload;
  const read = (workload = located()) =>
    readAccounts(workload, { processes: join(folder, 'proc'), cgroups: join(folder, 'cgroup') });

  /** A workload as a kernel with cgroups of version 2 shows it. */
  const show = () => {
    const cgroup = `cgroup/docker/${ID}`;
    write('proc/7/cgroup', `0::/docker/${ID}\n`);
    write('proc/7/net/dev', `${HEADER}  eth0: 100 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n`);
    write('proc/7/net/tcp', [socket('0100007F:5606', '01'), socket('0100007F:0050', '01')].join('\n'));
    write('proc/7/net/snmp', 'Tcp: ActiveOpens PassiveOpens CurrEstab\nTcp: 3 9 2\n');
    write(`${cgroup}/cpu.stat`, 'usage_usec 5000000\nuser_usec 1\n');
    write(`${cgroup}/cpu.max`, '200000 100000\n');
    write(`${cgroup}/memory.current`, '1000\n');
    write(`${cgroup}/memory.max`, '4000\n');
    write(`${cgroup}/memory.stat`, 'anon 1\ninactive_file 300\n');
    return cgroup;
  };

  it('are read from the files of the kernel', () => {
    show();
    const workload = located();
    // Whether a connection to SSH is a session is known at the second look.
    expect(read(workload)?.sshSessions).toBeNull();
    expect(read(workload)).toEqual({
      cpuUs: 5_000_000,
      cpuLimitMillis: 2_000,
      memoryUsedBytes: 700,
      memoryLimitBytes: 4_000,
      networkInBytes: 100,
      networkOutBytes: 7,
      sshSessions: 1,
      portConnections: 1,
      connectionsOpened: 9,
    });
  });

  it('a connection to SSH is a session once it was open at two looks', () => {
    show();
    const workload = located();
    const look = (opened: number, ...peers: string[]) => {
      const lines = peers.map((peer) => socket('0100007F:5606', '01').replace('C350', peer));
      write('proc/7/net/tcp', lines.join('\n'));
      write('proc/7/net/snmp', `Tcp: ActiveOpens PassiveOpens CurrEstab\nTcp: 3 ${opened} ${peers.length}\n`);
      return read(workload)?.sshSessions;
    };
    expect([look(1), look(2, 'AAAA'), look(3, 'BBBB'), look(4, 'BBBB', 'CCCC'), look(4, 'BBBB', 'CCCC')]).toEqual([
      0, 0, 0, 1, 2,
    ]);
    expect(look(5)).toBe(0);
  });

  it('are read from cgroups of version 1', () => {
    show();
    write('proc/7/cgroup', `2:memory:/docker/${ID}\n4:cpu,cpuacct:/docker/${ID}\n`);
    write(`cgroup/cpuacct/docker/${ID}/cpuacct.usage`, '7000999\n');
    write(`cgroup/cpu/docker/${ID}/cpu.cfs_quota_us`, '-1\n');
    write(`cgroup/cpu/docker/${ID}/cpu.cfs_period_us`, '100000\n');
    write(`cgroup/memory/docker/${ID}/memory.usage_in_bytes`, '1000\n');
    write(`cgroup/memory/docker/${ID}/memory.limit_in_bytes`, '9223372036854771712\n');
    write(`cgroup/memory/docker/${ID}/memory.stat`, 'inactive_file 1\ntotal_inactive_file 400\n');
    expect(read()).toMatchObject({
      cpuUs: 7_000,
      cpuLimitMillis: null,
      memoryUsedBytes: 600,
      memoryLimitBytes: null,
    });
  });

  it('are none where another process has the id now', () => {
    show();
    write('proc/7/cgroup', '0::/user.slice\n');
    expect(read()).toBeUndefined();
    rmSync(join(folder, 'proc'), { recursive: true });
    expect(read()).toBeUndefined();
  });

  it('have nothing, and not zero, of what cannot be read', () => {
    const cgroup = show();
    for (const gone of [
      `${cgroup}/cpu.stat`,
      `${cgroup}/memory.stat`,
      'proc/7/net/dev',
      'proc/7/net/tcp',
      'proc/7/net/snmp',
    ])
      rmSync(join(folder, gone));
    expect(read()).toEqual({
      cpuUs: null,
      cpuLimitMillis: 2_000,
      memoryUsedBytes: null,
      memoryLimitBytes: 4_000,
      networkInBytes: null,
      networkOutBytes: null,
      sshSessions: null,
      portConnections: null,
      connectionsOpened: null,
    });
  });

  it('look through the sockets only where something may have changed', () => {
    show();
    const workload = located();
    const counters = (text: string) =>
      write('proc/7/net/snmp', `Tcp: ActiveOpens PassiveOpens CurrEstab\nTcp: ${text}\n`);
    read(workload);
    expect(read(workload)).toMatchObject({ sshSessions: 1, portConnections: 1 });
    write('proc/7/net/tcp', '');
    expect(read(workload)).toMatchObject({ sshSessions: 1, portConnections: 1 });
    counters('3 10 2');
    expect(read(workload)).toMatchObject({ sshSessions: 0, portConnections: 0, connectionsOpened: 10 });
    for (const changed of ['4 10 2', '4 10 3', '4 11 3']) {
      const isOne = changed !== '4 10 3';
      write('proc/7/net/tcp', isOne ? socket('0100007F:0050', '01') : '');
      counters(changed);
      expect(read(workload)?.portConnections, changed).toBe(isOne ? 1 : 0);
    }
    // The kernel says that there is none.
    counters('4 11 0');
    expect(read(workload)).toMatchObject({ sshSessions: 0, portConnections: 0 });
  });

  it('follow no link', () => {
    const cgroup = show();
    rmSync(join(folder, cgroup, 'memory.current'));
    write('elsewhere', '999\n');
    symlinkSync(join(folder, 'elsewhere'), join(folder, cgroup, 'memory.current'));
    expect(read()?.memoryUsedBytes).toBeNull();
  });

  it('count no connections where there are more than the host reads, or where some cannot be counted', () => {
    show();
    write('proc/7/net/tcp6', `${socket('0100007F:0050', '01')}\n`.repeat(3_000));
    expect(read()).toMatchObject({ sshSessions: null, portConnections: null });
    write('proc/7/net/tcp6', '');
    const withUdp = located([
      { ...port, port: 80, protocol: 'tcp' },
      { ...port, port: 81, protocol: 'udp' },
    ]);
    read(withUdp);
    expect(read(withUdp)).toMatchObject({ sshSessions: 1, portConnections: null });
  });
});
