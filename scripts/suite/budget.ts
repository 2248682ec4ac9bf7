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
  build: 60,
  check: 80,
  calibrate: 30,
  quick: 620,
  simulation: 105,
  steps: 105,
  deep: 215,
  load: 60,
  tools: 50,
  'image-debian': 50,
  chromium: 20,
  'image-vm-runner': 75,
  'image-vm-disks': 170,
  'image-systemd': 65,
  'image-control-plane': 75,
  release: 50,
  docker: 980,
  'docker-alone': 215,
  vm: 95,
  'vm-rent': 95,
  machine: 120,
  browser: 660,
  sweeps: 190,
};

/** A run in CI fails above this share of its budget. */
export const MOST_OF_BUDGET = 1.25;
