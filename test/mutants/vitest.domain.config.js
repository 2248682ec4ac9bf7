import { defineConfig } from 'vitest/config';

/** They test no pure rules, and take their time. */
const OTHERS = ['backup', 'scheduled-backups', 'store', 'passwords', 'clock-watch', 'port-allocator'];

export default defineConfig({
  test: {
    include: ['test/unit/**/*.test.ts'],
    exclude: OTHERS.map((name) => `test/unit/${name}.test.ts`),
    testTimeout: 20_000,
  },
});
