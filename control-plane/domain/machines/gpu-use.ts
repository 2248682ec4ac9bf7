/** What a GPU is used for; each is one of these, the first that holds. */
export const GPU_USES = ['sold', 'quarantined', 'unhealthy', 'free'] as const;
export type GpuUse = (typeof GPU_USES)[number];

export function gpuUse(gpu: { isClaimed: boolean; isQuarantined: boolean; isHealthy: boolean }): GpuUse {
  if (gpu.isClaimed) return 'sold';
  if (gpu.isQuarantined) return 'quarantined';
  return gpu.isHealthy ? 'free' : 'unhealthy';
}
