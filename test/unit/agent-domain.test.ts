import { describe, expect, it } from 'vitest';
import { egressMbit, ipv4Rules } from '../../agent/domain/egress.js';
import { nameOfReport } from '../../agent/domain/ended-run.js';
import { wasKilledBy } from '../../agent/domain/exit.js';
import { candidatePorts, publishPorts } from '../../agent/domain/ports.js';
import { capacityOf, freeSubnets, networkOf, overlap, parseSubnet } from '../../agent/domain/subnets.js';
import { graceOf } from '../../agent/domain/stop-grace.js';
import { retryDelayMs } from '../../agent/link/backoff.js';
import { containerOptions } from '../../agent/runtime/docker/containers/container-options.js';
import { imageDefaults } from '../../agent/runtime/docker/images/images.js';
import { LineReader } from '../../agent/runtime/docker/containers/log-lines.js';
import { specOf } from '../suites/runtime-suite.js';

describe('ports', () => {
  it('come once each, from the offset on, less the used ones', () => {
    expect(candidatePorts({ first: 10, last: 14 }, new Set([12]), 1)).toEqual([11, 13, 14, 10]);
    expect(candidatePorts({ first: 10, last: 10 }, new Set([10]), 7)).toEqual([]);
  });
});

describe('egress', () => {
  it('is a share of the line, or what the owner says', () => {
    expect(egressMbit({ mostMbit: null }, 10_000)).toBe(9_000);
    expect(egressMbit({ mostMbit: null }, null)).toBe(900);
    expect(egressMbit({ mostMbit: 50 }, 10_000)).toBe(50);
    expect(egressMbit({ mostMbit: null }, 400_000)).toBe(180_000);
  });

  it('above that is dropped before anything else is asked', () => {
    const policy = { resolvers: [], allowed: [], instances: '10.213.0.0/16', mostMbit: null };
    const [, , , , first] = ipv4Rules(policy, 8).split('\n');
    expect(first).toMatch(/^-A GPURENT-FORWARD -m hashlimit --hashlimit-above 976kb\/s .* -j DROP$/);
  });
});

describe('networks', () => {
  it('of instances come once each, less those that overlap others', () => {
    const pool = parseSubnet('10.0.0.0/27');
    if (!pool) throw new Error('no pool');
    const used = ['10.0.0.8/30', '192.168.0.0/16'].flatMap((text) => parseSubnet(text) ?? []);
    expect([...freeSubnets(pool, used, 3)]).toEqual(['10.0.0.24/29', '10.0.0.0/29', '10.0.0.16/29']);
    expect([...freeSubnets(pool, [pool], 0)]).toEqual([]);
  });

  it('are read, and what is none is not', () => {
    expect(parseSubnet('10.213.0.0/16')).toEqual({ first: 0x0ad50000, prefix: 16 });
    for (const text of ['10.213.0.1/16', '10.0.0.0/33', '10.0.0.256/32', 'fd00::/8', '']) {
      expect(parseSubnet(text)).toBeUndefined();
    }
    expect(networkOf('10.213.7.9/16')).toEqual({ first: 0x0ad50000, prefix: 16 });
    expect(networkOf('10.1.213.200/32')).toEqual({ first: 0x0a01d5c8, prefix: 32 });
    expect(networkOf('255.255.255.255/32')).toEqual({ first: 0xffffffff, prefix: 32 });
    expect(networkOf('203.0.113.7/0')).toEqual({ first: 0, prefix: 0 });
    for (const text of ['256.0.0.0/8', '10.0.0.256/32', '1.1.1.1/33', 'x1.1.1.1/8', '1.1.1.1/8x', '1.1.1.1'])
      expect(networkOf(text)).toBeUndefined();
  });

  it('overlap where they share an address, and not where one begins behind the other', () => {
    const shares = (one: string, other: string) =>
      overlap(networkOf(one) ?? { first: 0, prefix: 0 }, networkOf(other) ?? { first: 0, prefix: 0 });
    expect([shares('10.0.0.0/29', '10.0.0.7/32'), shares('10.0.0.7/32', '10.0.0.0/29')]).toEqual([true, true]);
    expect([shares('10.0.0.0/29', '10.0.0.8/29'), shares('10.0.0.8/29', '10.0.0.0/29')]).toEqual([false, false]);
  });

  it('of a pool are as many as fit into it', () => {
    expect([16, 28, 29, 30].map((prefix) => capacityOf({ first: 0, prefix }))).toEqual([8_192, 2, 1, 0]);
  });
});

describe('lines of a log', () => {
  const frame = (text: string, stream = 1) => {
    const body = Buffer.from(text);
    const header = Buffer.alloc(8);
    header[0] = stream;
    header.writeUInt32BE(body.length, 4);
    return Buffer.concat([header, body]);
  };

  it('are whole however the bytes are cut', () => {
    const bytes = Buffer.concat([frame('T1 höher\n'), frame('T2 \n', 2), frame('T3 a b\r\n')]);
    for (let size = 1; size <= bytes.length; size++) {
      const reader = new LineReader();
      const lines = [];
      for (let at = 0; at < bytes.length; at += size) lines.push(...reader.push(bytes.subarray(at, at + size)));
      expect(lines).toEqual([
        { at: 'T1', text: 'höher' },
        { at: 'T2', text: '' },
        { at: 'T3', text: 'a b' },
      ]);
    }
  });

  it('that Docker has split are joined, and cut where they are too long', () => {
    const reader = new LineReader();
    expect(reader.push(frame('T1 first '))).toEqual([]);
    expect(reader.push(frame('T9 other\n', 2))).toEqual([{ at: 'T9', text: 'other' }]);
    expect(reader.push(frame('T2 second\n'))).toEqual([{ at: 'T1', text: 'first second' }]);
    for (let i = 0; i < 10; i++) reader.push(frame(`T ${'x'.repeat(16_000)}`));
    expect(reader.push(frame('T \n'))[0]?.text).toHaveLength(16_384);
  });
});

describe('a container', () => {
  const info = {
    instanceId: '12345678-0000',
    kind: 'container' as const,
    sequence: 1,
    gpuUuids: ['GPU-1'],
    diskGb: 20,
    sshPort: 20_000,
    ports: [],
    tokenHash: '',
    image: 'image:1',
    origin: '',
  };
  const placement = {
    hostId: 'host',
    info,
    imageId: 'sha256:1',
    network: 'gpurent-12345678-0000',
    guestTools: '/tools',
    bindAddress: '0.0.0.0',
    publicAddress: '203.0.113.9',
    resolvers: ['192.0.2.53'],
    openFiles: 1024,
    containerRuntime: null,
    mounts: [],
    hasDiskQuota: false,
    gpuAttachment: { env: ['NVIDIA_VISIBLE_DEVICES=GPU-1'], deviceRequests: [] },
  };
  const image = {
    entrypoint: ['/entry'],
    command: ['run'],
    user: 'app:app',
    stopSignal: 'SIGQUIT',
    volumes: [],
    setsHome: false,
    workingDir: '',
  };

  it('takes nothing but values from what is sent', () => {
    const env = [
      { key: 'GPURENT_RUN_AS', value: 'root' },
      { key: 'NVIDIA_VISIBLE_DEVICES', value: 'all' },
      { key: 'MINE', value: 'x' },
    ];
    const options = containerOptions(specOf('image:1', { env }), image, placement);
    expect(options.Env).toContain('MINE=x');
    expect(options.Env?.filter((entry) => entry.startsWith('NVIDIA_'))).toEqual(['NVIDIA_VISIBLE_DEVICES=GPU-1']);
    expect(options.Env?.filter((entry) => entry.startsWith('GPURENT_RUN_AS'))).toEqual(['GPURENT_RUN_AS=app:app']);
    expect(options.HostConfig?.Mounts).toHaveLength(1);
  });

  it('publishes SSH and what no proxy guards, and tells the workload where', () => {
    const ports = publishPorts(
      [
        { port: 8888, protocol: 'http', label: '', openButton: false, guard: 'proxy', jupyter: true },
        { port: 8000, protocol: 'http', label: '', openButton: true, guard: 'bearer', jupyter: false },
        { port: 53, protocol: 'udp', label: '', openButton: false, guard: 'proxy', jupyter: false },
        { port: 54, protocol: 'udp', label: '', openButton: false, guard: 'none', jupyter: false },
      ],
      [20_001, 20_002, 20_003],
    );
    expect(ports).toEqual([
      { port: 8888, protocol: 'tcp', hostPort: 20_001, guarded: true, link: 'jupyter' },
      { port: 8000, protocol: 'tcp', hostPort: 20_002, guarded: false, link: 'open' },
      { port: 54, protocol: 'udp', hostPort: 20_003, guarded: false, link: null },
    ]);
    const options = containerOptions(specOf('image:1'), image, { ...placement, info: { ...info, ports } });
    expect(Object.keys(options.HostConfig?.PortBindings as object)).toEqual(['22022/tcp', '8000/tcp', '54/udp']);
    expect(options.Env).toEqual(
      expect.arrayContaining(['PUBLIC_ADDRESS=203.0.113.9', 'PUBLIC_TCP_PORT_8888=20001', 'PUBLIC_UDP_PORT_54=20003']),
    );
  });

  it('is held to its disk where Docker can do that', () => {
    const options = (hasDiskQuota: boolean) =>
      containerOptions(specOf('image:1', { diskGb: 20 }), image, { ...placement, hasDiskQuota }).HostConfig;
    expect(options(true)?.StorageOpt).toEqual({ size: '20000000000' });
    expect(options(false)?.StorageOpt).toBeUndefined();
  });

  it('runs the template’s command, or what the image says', () => {
    expect(containerOptions(specOf('image:1'), image, placement).Cmd).toEqual(['/entry', 'run']);
    expect(containerOptions(specOf('image:1', { command: ['mine'] }), image, placement).Cmd).toEqual(['mine']);
  });
});

describe('an image', () => {
  it('that says nothing, or null, has no defaults', () => {
    const nothing = {
      entrypoint: [],
      command: [],
      user: '',
      stopSignal: '',
      volumes: [],
      setsHome: false,
      workingDir: '',
    };
    expect(imageDefaults({})).toEqual(nothing);
    expect(imageDefaults({ Entrypoint: null, Cmd: null, User: null, Env: null })).toEqual(nothing);
  });

  it('runs what it says', () => {
    expect(imageDefaults({ Entrypoint: null, Cmd: ['bash'], User: '1000', Env: ['HOME=/data'] })).toEqual({
      entrypoint: [],
      command: ['bash'],
      user: '1000',
      stopSignal: '',
      volumes: [],
      setsHome: true,
      workingDir: '',
    });
  });
});

describe('a run that is down after an outage', () => {
  const outage = { from: 100_000, to: 200_000 };
  const ended = (finishedAt: number) => ({ instanceId: 'i', startedAt: 0, finishedAt });

  it('went down with it in its time, or while Docker was shutting down', () => {
    const times = [69_999, 70_000, 150_000, 200_000, 200_001];
    expect(times.map((at) => wasKilledBy(outage, ended(at)))).toEqual([false, true, true, true, false]);
  });

  it('went down with it whenever it was, where the clock was set back meanwhile', () => {
    expect(wasKilledBy({ from: 200_000, to: 199_999 }, ended(5))).toBe(true);
    expect(wasKilledBy({ from: 200_000, to: 200_000 }, ended(5))).toBe(false);
  });
});

it('a stop gives a thirtieth of the run as its grace, within what its kind gives', () => {
  const limits = { leastGraceS: 2, graceS: 10 };
  expect([0, 89_999, 90_000, 299_999, 300_000, 9e9].map((ranMs) => graceOf(ranMs, limits))).toEqual([
    2, 2, 3, 9, 10, 10,
  ]);
});

it('a report has a name of its own among the messages', () => {
  expect(nameOfReport({ instanceId: 'i', number: 7 })).toBe('i 7');
});

it('a host dials again ever more slowly, at most every ten seconds', () => {
  expect(retryDelayMs(0, 0)).toBe(250);
  expect(retryDelayMs(0, 0.999)).toBeLessThanOrEqual(500);
  expect(retryDelayMs(50, 0.999)).toBeLessThanOrEqual(10_000);
});
