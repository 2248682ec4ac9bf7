/**
 * What the tests may take on the machine of factor 1, whose two cores are slow. `calibrate` says what the factor of a machine is.
 * README.md, CONTRIBUTING.md and docs/dev/testing.md name the minutes; test/check/budget.test.ts compares.
 */
export const MINUTES = {
  /** ./scripts/test, with artifacts and results kept, after a change of one line. */
  changed: 15,
  /** ./scripts/test, with artifacts kept. */
  kept: 20,
  /** ./scripts/test on a new machine. */
  nothing: 25,
  quick: 5,
  unit: 3,
};

/**
 * Processor seconds of each phase on that machine, while both of its cores compute: what they take today. Lower a number whenever
 * a phase has become cheaper. A phase that is not named here has none to spend.
 */
export const PROCESSOR_S: Readonly<Record<string, number>> = {
  packages: 75,
  compile: 105,
  build: 70,
  check: 80,
  calibrate: 12,
  quick: 760,
  simulation: 120,
  steps: 200,
  deep: 300,
  load: 60,
  tools: 50,
  'image-debian': 50,
  chromium: 20,
  'image-vm-runner': 75,
  'image-vm-disks': 170,
  'image-systemd': 65,
  release: 60,
  docker: 1_200,
  'docker-alone': 200,
  vm: 120,
  'vm-rent': 150,
  machine: 260,
  browser: 850,
  sweeps: 280,
};

/** A run in CI fails above this share of its budget. */
export const MOST_OF_BUDGET = 1.25;
