/** Registers tests that run at night alone: by day, others hold their promises (docs/dev/testing.md). */
export function atNight(register: () => void): void {
  if (process.env['TEST_NIGHTLY'] !== undefined) register();
}
