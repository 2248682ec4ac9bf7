import type Docker from 'dockerode';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { docker } from '../harness/docker.js';
import { SSH_PORT } from './measured-agent.js';

const RETRY_MS = 5;
const NAME = 'gpurent-bench-bare';
const SUBNET = '10.217.255.0/29';

/** Makes a container like the agent's by calls to Docker and nothing else. */
export class BareDocker {
  private constructor(
    private readonly options: Docker.ContainerCreateOptions,
    private readonly folder: string,
  ) {}

  /** Copies the options of the agent's container, and its files outside of it, which the agent removes with it. */
  static async like(instanceId: string): Promise<BareDocker> {
    const { Config, HostConfig } = await docker.getContainer(`gpurent-${instanceId}`).inspect();
    const folder = mkdtempSync(join(tmpdir(), 'gpurent-bench-bare-'));
    const Mounts = (HostConfig.Mounts ?? []).map((mount) => {
      if (!mount.Source.includes(instanceId)) return mount;
      const copy = join(folder, basename(dirname(mount.Source)), basename(mount.Source));
      cpSync(mount.Source, copy, { recursive: true });
      return { ...mount, Source: copy };
    });
    const own = { name: NAME, Labels: {}, HostConfig: { ...HostConfig, NetworkMode: NAME, Mounts } };
    return new BareDocker({ ...Config, ...own }, folder);
  }

  /** Creates the network and the container, starts it, and waits until SSH answers. */
  async deploy(): Promise<void> {
    await docker.createNetwork({
      Name: NAME,
      Driver: 'bridge',
      IPAM: { Driver: 'default', Config: [{ Subnet: SUBNET }] },
      Options: { 'com.docker.network.bridge.name': 'gprbench' },
    });
    await docker.createContainer(this.options);
    await this.start();
  }

  async start(): Promise<void> {
    await docker.getContainer(NAME).start();
    await untilGreeting();
  }

  async stop(): Promise<void> {
    await docker.getContainer(NAME).stop({ t: 1 });
  }

  async destroy(): Promise<void> {
    await docker.getContainer(NAME).remove({ force: true, v: true });
    await docker.getNetwork(NAME).remove();
  }

  /** Removes what a failed round has left. */
  async tidy(): Promise<void> {
    await this.destroy().catch(() => undefined);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

async function untilGreeting(): Promise<void> {
  while (!(await greets())) await pause(RETRY_MS);
}

function greets(): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port: SSH_PORT });
    const end = (answers: boolean) => {
      socket.destroy();
      resolve(answers);
    };
    socket.once('data', (data) => end(data.toString('latin1').startsWith('SSH-2.0-')));
    socket.once('error', () => end(false));
    socket.once('close', () => end(false));
  });
}
