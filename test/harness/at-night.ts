/** Whether this is a run of the night: `scripts/test --nightly` sets it. */
export const isNight = process.env['TEST_NIGHTLY'] === '1';

/** Registers tests that run at night alone: by day, others hold their promises (docs/dev/testing.md). */
export function atNight(register: () => void): void {
  if (isNight) register();
}
