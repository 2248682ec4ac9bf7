import type { SystemdMachine } from './systemd-machine.js';
import { releaseTarball } from './systemd-machine.js';

const CONTROL_PLANE_CONF = '/etc/gpurent/control-plane.conf';
/** Where the control plane finds the release that it gives to hosts. */
export const RELEASES = '/srv/releases';

/** Lets the control plane of a machine give its release to hosts. */
export async function giveRelease(machine: SystemdMachine): Promise<void> {
  await machine.sh(`mkdir -p ${RELEASES}`);
  await machine.copy(releaseTarball(), RELEASES);
  await machine.sh(`
    printf 'GPURENT_PUBLIC_URL=http://localhost:8080\\nGPURENT_PUBLIC_GRPC_ADDRESS=127.0.0.1:8090\\n' >>${CONTROL_PLANE_CONF}`);
  await nameRelease(machine, await machine.sh(`ls ${RELEASES}/*.tar.gz`));
}

/** Makes this tarball the release that hosts are given. */
export async function nameRelease(machine: SystemdMachine, path: string): Promise<void> {
  await machine.sh(`
    sed -i /^GPURENT_HOST_RELEASE=/d ${CONTROL_PLANE_CONF}
    echo GPURENT_HOST_RELEASE=${path} >>${CONTROL_PLANE_CONF}
    systemctl restart gpurent-control-plane
    gpurent-control-plane ready`);
}
