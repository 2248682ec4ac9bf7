import { expect, it } from 'vitest';
import { NO_PASSTHROUGH } from '../../agent/host/gpus/no-passthrough.js';
import { VirtualMachines, type VmParts } from '../../agent/runtime/docker/vm/virtual-machines.js';
import { asDevice, passedSetting } from '../../agent/runtime/docker/vm/vm-options.js';

const MADE_WITH = { paths: ['/dev/vfio/7'], addresses: ['0000:41:00.0'] };

/** A machine that was made with {@link MADE_WITH}, on a host that has its GPUs elsewhere now. */
function machineNow(now: { paths: string[]; addresses: string[] }) {
  const taken: string[] = [];
  const inspection = {
    Config: { Env: [passedSetting(MADE_WITH.addresses)] },
    HostConfig: { Devices: MADE_WITH.paths.map(asDevice) },
  };
  const engine = { call: async () => inspection };
  const take = async (uuids: readonly string[]) => void taken.push(...uuids);
  const passthrough = { ...NO_PASSTHROUGH, devices: async () => now, take };
  const machines = new VirtualMachines({ engine, passthrough, settings: { stopSeconds: 1 } } as unknown as VmParts);
  const start = () => machines.prepare({ instanceId: 'i', gpuUuids: ['GPU-1'] } as never);
  return { start, taken };
}

it('a machine whose GPUs are where they were is given them', async () => {
  const { start, taken } = machineNow(MADE_WITH);
  await start();
  expect(taken).toEqual(['GPU-1']);
});

it.each([
  ['slots', { ...MADE_WITH, addresses: ['0000:42:00.0'] }],
  ['IOMMU groups', { ...MADE_WITH, paths: ['/dev/vfio/8'] }],
])('a machine whose GPUs are in other %s since it was made is not started', async (_what, now) => {
  const { start, taken } = machineNow(now);
  await expect(start()).rejects.toMatchObject({ code: 'GPUS_UNAVAILABLE' });
  expect(taken).toEqual([]);
});
