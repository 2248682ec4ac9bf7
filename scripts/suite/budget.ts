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

/** Processor seconds of each phase. A phase that is not named here has none to spend. */
export const PROCESSOR_S: Readonly<Record<string, number>> = {
  packages: 60,
  compile: 115,
  build: 64,
  check: 80,
  calibrate: 3,
  quick: 595,
  simulation: 115,
  steps: 125,
  deep: 145,
  load: 47,
  tools: 45,
  'image-debian': 48,
  chromium: 16,
  'image-vm-runner': 70,
  'image-vm-disks': 90,
  'image-systemd': 60,
  release: 41,
  docker: 440,
  'docker-alone': 100,
  vm: 150,
  'vm-rent': 150,
  machine: 190,
  browser: 300,
  sweeps: 150,
};

/** A run in CI fails above this share of its budget. */
export const MOST_OF_BUDGET = 1.25;
