import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // The tests wait more than they compute.
    maxWorkers: '100%',
    projects: [
      {
        test: {
          name: 'quick',
          include: ['test/{unit,api,contract,property,simulation,wire,agent,check}/**/*.test.ts'],
          testTimeout: 30_000,
        },
      },
      {
        test: {
          name: 'docker',
          include: ['test/{docker,e2e}/**/*.test.ts'],
          testTimeout: 180_000,
          hookTimeout: 120_000,
          // One Docker Engine, two cores.
          fileParallelism: false,
        },
      },
    ],
  },
});
