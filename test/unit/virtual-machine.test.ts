import { describe, expect, it } from 'vitest';
import { seedOf, type GuestFacts } from '../../agent/domain/cloud-init.js';
import { judgeDisk } from '../../agent/domain/disk-image.js';
import { machineSize } from '../../agent/domain/virtual-machine.js';
import { vmOptions, type VmPlacement } from '../../agent/runtime/docker/vm/vm-options.js';
import { specOf } from '../suites/runtime-suite.js';

describe('a seed', () => {
  const facts: GuestFacts = {
    instanceId: '12345678-0000',
    sshUser: 'debian',
    sshAuthorizedKey: 'ssh-ed25519 AAAA me: "anything"',
    env: [],
    onstart: '',
  };
  const read = (changes: Partial<GuestFacts>) => {
    const seed = seedOf({ ...facts, ...changes });
    const [first, ...rest] = seed['user-data'].split('\n');
    expect(first).toBe('#cloud-config');
    expect(seed['user-data'] + seed['meta-data']).toMatch(/^[\n\x20-\x7e]*$/);
    return { metaData: JSON.parse(seed['meta-data']) as unknown, userData: JSON.parse(rest.join('\n')) as UserData };
  };
  interface UserData {
    users: unknown[];
    disable_root: boolean;
    ssh_pwauth: boolean;
    write_files: { path: string; content: string; append?: boolean; permissions?: string; encoding: string }[];
  }
  const fileOf = ({ write_files: files }: UserData, path: string) => {
    const content = files.find((file) => file.path === path)?.content;
    return content === undefined ? undefined : Buffer.from(content, 'base64').toString();
  };

  it('names the guest, and lets in by the key alone', () => {
    const { metaData, userData } = read({});
    expect(metaData).toEqual({ 'instance-id': '12345678-0000', 'local-hostname': '12345678' });
    expect(userData).toMatchObject({
      hostname: '12345678',
      manage_etc_hosts: 'localhost',
      disable_root: true,
      ssh_pwauth: false,
    });
    expect(userData.users).toEqual([
      {
        name: 'debian',
        ssh_authorized_keys: ['ssh-ed25519 AAAA'],
        sudo: 'ALL=(ALL) NOPASSWD:ALL',
        shell: '/bin/bash',
        lock_passwd: true,
      },
    ]);
  });

  it('lets root in where the template says root, and nobody without a key', () => {
    const { userData } = read({ sshUser: 'root' });
    expect(userData.disable_root).toBe(false);
    expect(userData.users).toEqual([{ name: 'root', ssh_authorized_keys: ['ssh-ed25519 AAAA'] }]);
    expect(read({ sshAuthorizedKey: '' }).userData.users).toEqual([]);
  });

  it('tells shells every variable, whatever is in it, and logins what they can read', () => {
    const env = [
      { key: 'PLAIN', value: 'a b' },
      { key: 'ODD', value: `it's "odd" #$(reboot)\nä` },
      { key: 'not a name', value: 'x' },
    ];
    const { userData } = read({ env });
    expect(fileOf(userData, '/etc/profile.d/gpurent.sh')).toBe(
      `export PLAIN='a b'\nexport ODD='it'\\''s "odd" #$(reboot)\nä'\n`,
    );
    expect(fileOf(userData, '/etc/environment')).toBe('PLAIN="a b"\n');
    expect(userData.write_files.find(({ path }) => path === '/etc/environment')?.append).toBe(true);
  });

  it('gives logins each variable a line of its own, and none that is longer than they read', () => {
    // KEY="" and the end of the line.
    const value = (chars: number) => 'x'.repeat(chars - 'KEY=""\n'.length);
    const lines = (chars: number) =>
      fileOf(
        read({ env: ['KEY', 'OTHER'].map((key) => ({ key, value: key === 'KEY' ? value(chars) : 'o' })) }).userData,
        '/etc/environment',
      );
    expect(lines(1_000)).toBe(`KEY="${value(1_000)}"\nOTHER="o"\n`);
    expect(lines(1_001)).toBe('OTHER="o"\n');
  });

  it('writes files that only those may read and run who have to', () => {
    const { write_files: files } = read({ env: [{ key: 'A', value: 'b' }], onstart: 'true' }).userData;
    expect(files.map(({ path, permissions, encoding }) => [path, permissions, encoding])).toEqual([
      ['/etc/profile.d/gpurent.sh', '0644', 'b64'],
      ['/etc/environment', undefined, 'b64'],
      ['/var/lib/gpurent/onstart', '0700', 'b64'],
      ['/var/lib/cloud/scripts/per-boot/gpurent-onstart', '0755', 'b64'],
    ]);
  });

  it('runs onstart at every boot, with those variables', () => {
    const { userData } = read({ onstart: 'echo "ü"\n' });
    expect(fileOf(userData, '/var/lib/gpurent/onstart')).toBe('echo "ü"\n');
    const script = fileOf(userData, '/var/lib/cloud/scripts/per-boot/gpurent-onstart');
    expect(script).toBe('#!/bin/sh\n. /etc/profile.d/gpurent.sh\nexec /bin/sh /var/lib/gpurent/onstart\n');
    expect(read({}).userData.write_files.map(({ path }) => path)).toEqual(['/etc/profile.d/gpurent.sh']);
  });
});

describe('a disk', () => {
  const head = (change: (bytes: Buffer) => void = () => {}) => {
    const bytes = Buffer.alloc(34 * 512);
    bytes.writeUInt16LE(0xaa55, 510);
    change(bytes);
    return (bytes.toString('base64').match(/.{1,76}/g) ?? []).map((line) => `head ${line}`);
  };
  const info = (fields: Record<string, unknown> = {}) =>
    `info ${JSON.stringify({ format: 'qcow2', 'virtual-size': 2_000_000_000, ...fields })}`;

  it('with a boot sector boots by BIOS', () => {
    expect(judgeDisk([info(), 'check 0', ...head()])).toEqual({ format: 'qcow2', size: 2e9, firmware: 'bios' });
    expect(judgeDisk([info({ format: 'raw' }), ...head()])).toMatchObject({ format: 'raw', firmware: 'bios' });
    const sector = Buffer.alloc(512);
    sector.writeUInt16LE(0xaa55, 510);
    const alone = [info({ format: 'raw', 'format-specific': {} }), `head ${sector.toString('base64')}`];
    expect(judgeDisk(alone)).toMatchObject({ format: 'raw', firmware: 'bios' });
  });

  it('that cannot be read is told of in the words of who tried, as many as there is room for', () => {
    const lines = ['check 1', 'head AAAA', 'qemu-img: no', 'more info here'];
    expect(judgeDisk(lines)).toBe('its disk cannot be read: qemu-img: no more info here');
    expect(judgeDisk(['info {', 'x'.repeat(500)])).toBe(`its disk cannot be read: ${'x'.repeat(400)}`);
  });

  it.each([
    ['of the old kind', (bytes: Buffer) => bytes.writeUInt8(0xef, 446 + 16 + 4)],
    ['in a GPT', (bytes: Buffer) => bytes.write('28732ac11ff8d211ba4b00a0c93ec93b', 1024 + 128, 'hex')],
  ])('with an EFI partition %s boots by UEFI', (_, change) => {
    expect(judgeDisk([info(), 'check 3', ...head(change)])).toMatchObject({ firmware: 'uefi' });
  });

  it.each([
    ['cannot be read', ['qemu-img: could not open'], /cannot be read: qemu-img: could not open/],
    ['is of another format', [info({ format: 'vmdk' })], /of the format vmdk; give qcow2 or raw/],
    ['stands on another file', [info({ 'backing-filename': '/etc/shadow' })], /names another file/],
    ['keeps its data elsewhere', [info({ 'format-specific': { data: { 'data-file': '/x' } } })], /names another file/],
    ['is encrypted', [info({ encrypted: true })], /is encrypted/],
    ['has errors', [info(), 'check 2', ...head()], /is corrupt/],
    ['was not checked', [info(), ...head()], /is corrupt/],
    ['is empty', [info({ format: 'raw' })], /neither a boot sector nor a partition table/],
    ['holds something else', [info(), 'check 0', ...head((bytes) => bytes.fill(120))], /neither a boot sector/],
  ])('that %s is refused', (_, lines, reason) => {
    expect(judgeDisk(lines)).toMatch(reason);
  });
});

describe('a machine', () => {
  it('leaves of its slice what QEMU needs', () => {
    expect(machineSize({ cpuMillis: 12_500, memoryMb: 65_536 }, 'kvm')).toEqual({ cpus: 13, memoryMb: 64_720 });
    expect(machineSize({ cpuMillis: 100, memoryMb: 2_048 }, 'tcg')).toEqual({ cpus: 1, memoryMb: 1_504 });
  });

  it('is none in a slice that is too small', () => {
    expect(machineSize({ cpuMillis: 1_000, memoryMb: 400 }, 'kvm')).toBeUndefined();
    expect(machineSize({ cpuMillis: 1_000, memoryMb: 467 }, 'kvm')).toBeUndefined();
    expect(machineSize({ cpuMillis: 1_000, memoryMb: 468 }, 'kvm')).toEqual({ cpus: 1, memoryMb: 256 });
  });
});

describe('the container of a machine', () => {
  const placement: VmPlacement = {
    hostId: 'host',
    info: {
      instanceId: '12345678-0000',
      kind: 'vm',
      sequence: 1,
      gpuUuids: ['GPU-1'],
      diskGb: 20,
      sshPort: 20_000,
      ports: [
        { port: 8888, protocol: 'tcp', hostPort: 20_001, guarded: true, link: 'jupyter' },
        { port: 5000, protocol: 'udp', hostPort: 20_002, guarded: false, link: null },
      ],
      tokenHash: '',
      image: 'image:1',
      origin: '',
    },
    disk: { imageId: 'sha256:1', format: 'raw', size: 1, firmware: 'uefi' },
    size: { cpus: 4, memoryMb: 7_000 },
    accelerator: 'kvm',
    network: 'network',
    bindAddress: '0.0.0.0',
    resolvers: [],
    openFiles: 1024,
    hasDiskQuota: true,
    stopSeconds: 90,
    graceS: 100,
    devices: ['/dev/kvm', '/dev/vfio/vfio', '/dev/vfio/30'],
    groups: [107],
    namespace: { usernsMode: 'host', user: '164000:164000' },
    passed: ['0000:0b:00.0', '0000:0b:00.1'],
  };
  const spec = specOf('image:1', { diskGb: 20, memoryMb: 8_192, cpuMillis: 4_000 });

  it('has the devices that its QEMU needs, as an account that may open them, and no privilege', () => {
    const { User, HostConfig } = vmOptions(spec, placement);
    expect(User).toBe('164000:164000');
    expect(HostConfig).toMatchObject({
      UsernsMode: 'host',
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      GroupAdd: ['107'],
      Memory: 8_192 * 1024 * 1024,
      NanoCpus: 4_000_000_000,
      // The disk, its tables, and what the machine itself remembers.
      StorageOpt: { size: String(20_020_000_000 + 64 * 1024 * 1024) },
      Ulimits: [
        { Name: 'nofile', Soft: 1024, Hard: 1024 },
        { Name: 'memlock', Soft: -1, Hard: -1 },
      ],
    });
    expect(HostConfig?.CapAdd).toBeUndefined();
    expect(HostConfig?.Devices).toEqual(
      ['/dev/kvm', '/dev/vfio/vfio', '/dev/vfio/30'].map((path) => ({
        PathOnHost: path,
        PathInContainer: path,
        CgroupPermissions: 'rw',
      })),
    );
    expect(vmOptions(spec, { ...placement, passed: [] }).HostConfig?.Ulimits).toHaveLength(1);
  });

  it('publishes what no proxy guards, and leads every port into the guest', () => {
    const { HostConfig, Env } = vmOptions(spec, placement);
    expect(Object.keys(HostConfig?.PortBindings as object)).toEqual(['22022/tcp', '5000/udp']);
    expect(Env).toContain('GPURENT_VM_FORWARD=tcp::22022-:22 tcp::8888-:8888 udp::5000-:5000');
    expect(Env).toContain('GPURENT_VM_DEVICES=0000:0b:00.0 0000:0b:00.1');
  });
});
