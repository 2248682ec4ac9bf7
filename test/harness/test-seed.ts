/** What random tests draw from: vitest.config.js sets it, by day by the commit, and prints it. */
export const SEED = Number(process.env['TEST_SEED']);
