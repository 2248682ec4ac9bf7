import { connect, createServer, type AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InstanceBody } from '../harness/api-client.js';
import { statusIs } from '../harness/control-plane.js';
import { importImage, removeImages } from '../harness/disks.js';
import { VM_DEBIAN, containersOf, docker } from '../harness/docker.js';
import { eventually } from '../../scripts/eventually.js';
import { RealPlatform, RealRenter, fingerprintOf } from '../harness/real.js';
import { Outside } from '../rig/outside.js';

/** An emulated processor is slow, and busy machines are slower. */
const BOOT_MS = 600_000;
const LONG_MS = 180_000;
const PATIENCE_MS = 900_000;
const CORRUPT = 'gpurent/test-vm-corrupt:1';
const FORBIDDEN = ['169.254.169.254', '10.99.99.99', '192.168.199.9'];
const ONSTART = 'echo "onstart has run with $MINE"';

let real: RealPlatform;

beforeAll(async () => {
  await importImage(CORRUPT, { 'disk/disk.qcow2': Buffer.from('QFI\xfb\0\0\0\x03 and nothing more', 'latin1') });
  const agentEnv = { GPURENT_AGENT_VMS: 'tcg', GPURENT_AGENT_VM_STOP_SECONDS: '150' };
  real = await RealPlatform.start({ gpus: 2, agentEnv });
}, PATIENCE_MS);
afterAll(async () => {
  await real.stop();
  await removeImages(CORRUPT);
});

/** Waits until SSH answers: a machine counts as running after some minutes even if it is silent. */
async function answersSsh(renter: RealRenter, id: string): Promise<InstanceBody> {
  await statusIs(renter.api, id, 'running', BOOT_MS);
  return eventually(
    'SSH to answer',
    async () => {
      const instance = await renter.api.get<InstanceBody>(`/v1/instances/${id}`);
      return typeof instance['ssh_ready_at'] === 'string' && instance;
    },
    BOOT_MS,
  );
}

async function logOf(renter: RealRenter, id: string): Promise<string> {
  return (await renter.api.get<{ lines: string[] }>(`/v1/instances/${id}/logs?tail=1000`)).lines.join('\n');
}

it('a host that has booted one offers virtual machines, and its doctor says on what', async () => {
  const renter = await RealRenter.on(real, { kind: 'vm' });
  const { items } = await renter.api.get<{ items: { machine: { vm_capable: boolean } }[] }>('/v1/offers');
  expect(items.map(({ machine }) => machine.vm_capable)).toContain(true);
  expect((await real.ask('doctor')).stdout).toMatch(
    /virtual machines: a test machine has booted, on an emulated processor/,
  );
});

describe('a Debian', () => {
  let renter: RealRenter;
  let up: InstanceBody;

  beforeAll(async () => {
    const ports = [{ port: 7000, protocol: 'tcp', guard: 'none' }];
    renter = await RealRenter.on(real, { kind: 'vm', image: VM_DEBIAN, ssh_user: 'renter', onstart: ONSTART, ports });
    const { id } = await renter.deploy({ disk_gb: 12, env_overrides: [{ key: 'MINE', value: 'a b' }] });
    up = await answersSsh(renter, id);
  }, PATIENCE_MS);

  const ssh = (command: string) => renter.ssh(up, command);
  const bootId = () => ssh('cat /proc/sys/kernel/random/boot_id');

  it('is logged into by the key, as the account of its template, which may become root', async () => {
    expect(await ssh('id -un; hostname; echo "$MINE $GPU_COUNT"; sudo id -u')).toBe(
      `renter\n${up.id.slice(0, 8)}\na b 1\n0`,
    );
  });

  it('is shown to the owner of its host', async () => {
    expect((await real.ask('status')).stdout).toMatch(
      new RegExp(`${up.id}  vm  running  12 GB  SSH on ${String(up.ssh_port)}`),
    );
  });

  it('has a kernel of its own, and the disk that was rented', async () => {
    expect(await ssh('systemd-detect-virt --vm')).toBe('qemu');
    const gigabytes = Number(await ssh('df --output=size -B 1000000000 / | tail -n 1'));
    expect(gigabytes).toBeGreaterThanOrEqual(11);
    expect(gigabytes).toBeLessThanOrEqual(12);
  });

  it('shows its console as the log, and what onstart says', async () => {
    const log = await eventually(
      'onstart to have run',
      async () => {
        const text = await logOf(renter, up.id);
        return text.includes('onstart has run with a b') && text;
      },
      BOOT_MS,
    );
    expect(log).toContain('Linux version');
  });

  it('is reached at a port of its template', async () => {
    const port = (await ssh('. /etc/profile; echo "$PUBLIC_TCP_PORT_7000"')).trim();
    const server = ssh(
      `timeout 240 python3 -c 'import socket; s = socket.create_server(("", 7000)); c, _ = s.accept(); c.sendall(b"from inside"); c.close()'`,
    );
    const heard = await eventually('an answer', () => hear(Number(port)), LONG_MS);
    expect(heard).toBe('from inside');
    await server;
  });

  it('reaches the Internet, and neither its host nor what is private', async () => {
    const outside = await Outside.with(FORBIDDEN);
    const service = createServer((socket) => socket.end('reached'));
    await new Promise<void>((resolve) => service.listen(0, '0.0.0.0', resolve));
    const { port } = service.address() as AddressInfo;
    const reach = (host: string, at = 80) => ssh(`timeout 5 bash -c 'head -n 1 </dev/tcp/${host}/${at}' 2>&1 || true`);
    try {
      expect(await eventually('a way out', async () => (await reach(Outside.PUBLIC)) === 'reached', LONG_MS)).toBe(
        true,
      );
      for (const address of FORBIDDEN) expect(await reach(address)).not.toContain('reached');
      // What the guest takes for its gateway is its own container.
      for (const host of [Outside.HOST, '10.0.2.2']) expect(await reach(host, port)).not.toContain('reached');
    } finally {
      service.close();
      outside.close();
    }
  });

  it('goes on while the agent is killed, and is found again', async () => {
    const [boot, before] = [await bootId(), await fingerprintOf(up.id)];
    await real.killAgent();
    expect(await bootId()).toBe(boot);
    await real.startAgent();
    expect(await fingerprintOf(up.id)).toEqual(before);
    expect(await renter.api.get<InstanceBody>(`/v1/instances/${up.id}`)).toMatchObject({ status: 'running' });
  });

  it('shuts down cleanly on stop, and has its files, key and account again after a start', async () => {
    const boot = await bootId();
    await ssh('echo kept > kept; sudo sync');
    await renter.api.post(`/v1/instances/${up.id}/stop`);
    await statusIs(renter.api, up.id, 'stopped', BOOT_MS);
    const log = await logOf(renter, up.id);
    expect(log).toMatch(/reboot: Power down/);
    expect(log).toContain('gpurent: the machine is off');
    expect(log).not.toContain('is powered off');
    await renter.start(up.id);
    up = await answersSsh(renter, up.id);
    expect(await ssh('cat kept')).toBe('kept');
    expect(await bootId()).not.toBe(boot);
  });

  it('is gone without a trace after destroy', async () => {
    await renter.destroy(up.id);
    expect(await containersOf(up.id)).toEqual([]);
    expect((await docker.listNetworks()).map(({ Name }) => Name)).not.toContain(`gpurent-${up.id}`);
    expect((await docker.listVolumes()).Volumes).toEqual([]);
  });
});

it('a corrupt disk fails the deploy with a reason', async () => {
  const renter = await RealRenter.on(real, { kind: 'vm', image: CORRUPT });
  const { id } = await renter.deploy();
  const failed = await statusIs(renter.api, id, 'error', LONG_MS);
  expect(failed).toMatchObject({ error_code: 'provision_failed' });
  expect(failed.error_message).toMatch(/no virtual machine can be made of .* its disk cannot be read/);
  await renter.destroy(id);
});

function hear(port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    let heard = '';
    const socket = connect({ host: '127.0.0.1', port });
    socket.on('data', (data) => (heard += data.toString()));
    socket.on('error', () => resolve(undefined));
    socket.on('close', () => resolve(heard || undefined));
  });
}
