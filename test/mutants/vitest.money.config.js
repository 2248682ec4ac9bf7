import { defineConfig } from 'vitest/config';

/** All in one process and in simulated time, so that Stryker knows which test runs a line, and no mutant makes anything wait. */
export default defineConfig({
  test: {
    include: ['test/property/billing/cheats.test.ts', 'test/api/stripe.test.ts'],
    testTimeout: 20_000,
    hookTimeout: 20_000,
  },
});
