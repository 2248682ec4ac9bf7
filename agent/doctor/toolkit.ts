import type { GpuTestResult } from '../domain/gpu-verdict.js';
import { bad, doubtful, good, type Finding } from './finding.js';

/** What can be read of NVIDIA's container toolkit and of Docker without a start of a container. */
export interface ToolkitFacts {
  /** The version of Docker. */
  docker: string;
  /** Whether Docker has a runtime of the name `nvidia`. */
  hasRuntime: boolean;
  /** When the hook that Docker looks for at its start was installed, in milliseconds since 1970; null: it is not there. */
  hookSince: number | null;
  /** When Docker was started; null: not known. */
  dockerSince: number | null;
  /** Whether nvidia-container-cli, which the hook runs, is there. */
  hasCli: boolean;
  /** The text of the toolkit's configuration; empty: there is none. */
  config: string;
  /** Whether the folders of CDI describe NVIDIA's devices. */
  hasCdi: boolean;
}

/** The first Docker with CDI. */
const CDI_MAJOR = 25;

/** Judges whether Docker can attach GPUs to containers by device requests. */
export function judgeToolkit(facts: ToolkitFacts): Finding {
  const { docker, hasRuntime, hookSince, dockerSince, hasCli, config, hasCdi } = facts;
  const install =
    'install nvidia-container-toolkit, then: nvidia-ctk runtime configure --runtime=docker, and restart Docker';
  if (hookSince === null && !hasRuntime) return bad('Docker cannot attach GPUs to containers', install);
  if (hookSince === null)
    return bad('Docker does not find nvidia-container-runtime-hook, so it cannot attach GPUs to containers', install);
  if (!hasCli)
    return bad(
      'nvidia-container-cli is missing, so each container with GPUs fails',
      'install libnvidia-container-tools',
    );
  if (/^\s*mode\s*=\s*"cdi"/m.test(config)) {
    const legacy = 'or run: nvidia-ctk config --in-place --set nvidia-container-runtime.mode=auto';
    if (Number.parseInt(docker, 10) < CDI_MAJOR)
      return bad(
        `the toolkit is set to CDI, which Docker ${docker} does not know`,
        `upgrade Docker to ${CDI_MAJOR}, ${legacy}`,
      );
    if (!hasCdi)
      return bad(
        'the toolkit is set to CDI, and no CDI device is described',
        `run: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml, ${legacy}`,
      );
  }
  if (dockerSince !== null && dockerSince < hookSince)
    // It knows the toolkit where that was only upgraded meanwhile.
    return doubtful(
      'Docker was started before the container toolkit was installed or upgraded, and may not know it',
      'restart Docker: systemctl restart docker',
    );
  return good('Docker knows it');
}

/** Judges what a test container with a GPU has shown. One that could not be tried shows nothing. */
export function judgeGpuStart({ kind, reason }: GpuTestResult): Finding {
  switch (kind) {
    case 'passed':
      return good('started with a GPU');
    case 'failed':
      return bad(
        `did not start with a GPU: ${reason}`,
        'after two such tests a minute apart this host takes no new instance. Restart Docker; if the toolkit is set to CDI, run: nvidia-ctk config --in-place --set nvidia-container-runtime.mode=auto. Then run doctor twice: two tests that pass bring the host back',
      );
    case 'not tested':
      return good(`not tested: ${reason}`);
  }
}
