import { defineConfig } from 'vitest/config';

const API = ['balance', 'billing', 'ignored-stops', 'metered-runs', 'paid-times', 'stripe'];

export default defineConfig({
  test: {
    include: ['test/property/billing/cheats.test.ts', `test/api/{${API.join(',')}}.test.ts`],
    // Whatever comes at all, comes well before.
    testTimeout: 10_000,
    hookTimeout: 20_000,
  },
});
