import { expect, it } from 'vitest';
import { SimulatedGpus } from '../../agent/host/gpus/simulated.js';
import { NvidiaGpus } from '../../agent/host/nvidia/nvidia.js';
import { isVendorVariable } from '../../shared/gpus/gpu-vendors.js';
import { ManualClock } from '../harness/manual-clock.js';

const DRIVERS = {
  'NVIDIA by device requests': new NvidiaGpus(new ManualClock(), 'device-requests'),
  'NVIDIA by CDI': new NvidiaGpus(new ManualClock(), 'cdi'),
  simulated: new SimulatedGpus(2, 'seed'),
};

it.each(Object.entries(DRIVERS))('%s: whatever chooses GPUs is dropped from what renters set', (_, driver) => {
  const names = driver.attachment(['GPU-1']).env.map((pair) => pair.split('=')[0] ?? '');
  expect(names).not.toEqual([]);
  expect(names.filter((name) => !isVendorVariable(name))).toEqual([]);
});
