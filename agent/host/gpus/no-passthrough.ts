import type { Passthrough } from './driver.js';

/** The passthrough of simulated GPUs: virtual machines run without GPUs. */
export const NO_PASSTHROUGH: Passthrough = {
  whyUnavailable: async () => undefined,
  devices: async () => ({ paths: [], addresses: [] }),
  take: async () => {},
  giveBack: async () => {},
  taken: async () => [],
};
