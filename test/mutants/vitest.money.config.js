import { defineConfig } from 'vitest/config';

/**
 * All in one process and in simulated time, so that Stryker knows which test runs a line, and no mutant makes anything wait. The
 * histories are the same each time.
 */
export default defineConfig({
  test: {
    include: ['test/property/billing/*.test.ts', 'test/api/stripe.test.ts'],
    env: { TEST_ROUNDS: '1', TEST_SEED: '1' },
    testTimeout: 60_000,
    hookTimeout: 20_000,
  },
});
