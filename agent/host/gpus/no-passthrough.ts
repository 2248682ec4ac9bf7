import type { Passthrough } from './driver.js';

/** Of GPUs that no virtual machine is given: machines run without. */
export const NO_PASSTHROUGH: Passthrough = {
  obstacle: async () => undefined,
  devices: async () => ({ paths: [], addresses: [] }),
  take: async () => {},
  giveBack: async () => {},
  taken: async () => [],
};
