import { fileURLToPath } from 'node:url';
import Docker from 'dockerode';
import { createServer } from 'node:net';
import { eventually } from '../../scripts/eventually.js';

/** What `scripts/test` prepares: a Docker Engine, our tools, and a small image that holds a static shell. */
export const DOCKER_SOCKET = (process.env['DOCKER_HOST'] ?? 'unix:///var/run/docker.sock').replace('unix://', '');
export const GUEST_TOOLS = fileURLToPath(new URL('../../.local/guest-tools', import.meta.url));
export const SAMPLE_IMAGE = 'gpurent/sample:1';
/** Debian with Python, an account `worker`, and a program that is setuid. */
export const DEBIAN_IMAGE = 'gpurent/debian:1';

/** What virtual machines run in, and two disks to boot: see test/rig/make-vm-images. */
export const VM_RUNNER = 'localhost/gpurent/vm-runner:1';
export const VM_DEBIAN = 'gpurent/vm-debian:1';
export const VM_UEFI = 'gpurent/vm-uefi:1';

export const docker = new Docker({ socketPath: DOCKER_SOCKET });

/** Containers of an instance, running or not. */
export function containersOf(instanceId: string, on = docker): Promise<Docker.ContainerInfo[]> {
  return on.listContainers({ all: true, filters: { label: [`gpurent.instance=${instanceId}`] } });
}

/** Removes a container. Docker gives up after ten seconds where thousands of processes have to end first. */
export async function removeContainer(id: string): Promise<void> {
  const container = docker.getContainer(id);
  const isGone = async () => {
    try {
      await container.remove({ force: true, v: true });
      return true;
    } catch (error) {
      return (error as { statusCode?: number }).statusCode === 404;
    }
  };
  await eventually(`container ${id} to be removed`, isGone, 60_000);
}

/** Runs a command in an instance's container, as somebody on the host could. */
export async function execIn(instanceId: string, ...command: string[]): Promise<void> {
  const exec = await docker.getContainer(`gpurent-${instanceId}`).exec({ Cmd: command, AttachStdout: true });
  const stream = await exec.start({});
  stream.resume();
  await new Promise((resolve) => stream.once('end', resolve));
}

/** The sample image with other words of its own, in the form of Dockerfile instructions. */
export async function makeImage(
  name: string,
  instructions: string[],
  stopSignal = 'SIGTERM',
  from = SAMPLE_IMAGE,
): Promise<string> {
  const container = await docker.createContainer({ Image: from, Cmd: ['true'], StopSignal: stopSignal });
  await container.commit({ repo: name, tag: '1', changes: instructions.join('\n') });
  await container.remove();
  return `${name}:1`;
}

/** Listens on a port of this machine; answers how to stop. */
export function occupy(port: number, host = '127.0.0.1'): Promise<() => Promise<void>> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ port, host }, () => resolve(() => new Promise((closed) => server.close(() => closed()))));
  });
}
