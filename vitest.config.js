import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** By day the commit decides what random tests draw, so that none is red by chance; at night the seed is new. */
function seedOfThisRun() {
  if (process.env.TEST_NIGHTLY === '1') return randomInt(2 ** 31);
  try {
    return parseInt(execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' }).slice(0, 7), 16);
  } catch {
    return 1;
  }
}
if (process.env.TEST_SEED === undefined) {
  process.env.TEST_SEED = String(seedOfThisRun());
  process.stderr.write(`TEST_SEED=${process.env.TEST_SEED} repeats what random tests draw\n`);
}

/** What takes much processor time without Docker, and guards what quick tests look at, too. */
const DEEP = [
  'test/simulation/{bugs,group-commit,money-bugs,remembered,simulation}.test.ts',
  'test/contract/{client-package,clients,earlier-clients}.test.ts',
  'test/check/import-rules.test.ts',
];

/** Each visits all pages of the console. */
const SWEEPS = ['test/browser/console/{access,operator-access,states,operator-states}.test.ts'];

/** Virtual machines: a processor that is emulated takes a core. */
const MACHINES = ['test/{docker,e2e}/vm.test.ts'];

/** All that uses the same Docker Engine would notice these: rules for every host's packets, as many containers as the machine bears. */
const ALONE = ['test/docker/{idle-stop,loud-logs,control-plane-image}.test.ts', 'test/e2e/{crowd,escape}.test.ts'];

/** At night only: by day, others hold their promises (docs/dev/testing.md). */
const OF_THE_NIGHT = [
  'test/docker/{idle-stop,loud-logs}.test.ts',
  'test/e2e/console.test.ts',
  'test/machine/agent-upgrade.test.ts',
];
const notByDay = process.env.TEST_NIGHTLY === '1' ? [] : OF_THE_NIGHT;

/** At night only: the guides' blocks that need packages beside ours. */
const SERVICES = ['test/machine/guide-services.test.ts'];

/** Tests wait for conditions: a slow machine makes them late, never red. The default is one second. */
const expect = { poll: { timeout: 60_000 } };
/** Ends only what hangs. */
const LONGEST_MS = 900_000;

const onDocker = {
  // A file costs three seconds more where it loads every module anew.
  isolate: false,
  expect,
  testTimeout: 600_000,
  hookTimeout: 300_000,
};

export default defineConfig({
  test: {
    // The tests wait as well as compute.
    maxWorkers: Math.ceil(1.5 * availableParallelism()),
    // Modules as vite has transformed them, by their content.
    experimental: { fsModuleCache: true },
    projects: [
      {
        test: {
          name: 'quick',
          include: ['test/{unit,api,contract,property,simulation,wire,agent,check}/**/*.test.ts'],
          exclude: DEEP,
          // A file costs two seconds more where it loads every module anew.
          isolate: false,
          setupFiles: ['test/harness/quick-setup.ts'],
          expect,
          testTimeout: LONGEST_MS,
          hookTimeout: LONGEST_MS,
        },
      },
      { test: { name: 'deep', include: DEEP, expect, testTimeout: LONGEST_MS, hookTimeout: LONGEST_MS } },
      // It says how long something takes, so nothing runs beside it.
      {
        test: {
          name: 'load',
          include: ['test/load/**/*.test.ts'],
          expect,
          testTimeout: LONGEST_MS,
          hookTimeout: LONGEST_MS,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: 'docker',
          include: ['test/{docker,e2e}/**/*.test.ts'],
          exclude: [...MACHINES, ...ALONE, ...notByDay],
          ...onDocker,
          // They use one Docker Engine, and wait more than they compute.
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'docker-alone',
          include: ALONE,
          exclude: notByDay,
          ...onDocker,
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          name: 'vm',
          include: MACHINES,
          expect,
          testTimeout: 1_800_000,
          hookTimeout: 300_000,
          fileParallelism: false,
        },
      },
      // Pages in Debian's Chromium.
      {
        test: {
          name: 'browser',
          include: ['test/browser/**/*.test.ts'],
          exclude: SWEEPS,
          // A file costs three seconds more where it loads every module anew.
          isolate: false,
          expect,
          testTimeout: LONGEST_MS,
          hookTimeout: LONGEST_MS,
        },
      },
      {
        test: {
          name: 'sweeps',
          include: SWEEPS,
          isolate: false,
          expect,
          testTimeout: LONGEST_MS,
          hookTimeout: LONGEST_MS,
        },
      },
      // At night: each alert of the guide, under a real Prometheus.
      { test: { name: 'alerts', include: ['test/alerts/**/*.test.ts'], testTimeout: 120_000, maxConcurrency: 8 } },
      // A machine with systemd shares this one's cgroups, and changes them: it comes last.
      {
        test: {
          name: 'machine',
          include: ['test/machine/**/*.test.ts'],
          exclude: [...SERVICES, ...notByDay],
          expect,
          testTimeout: 600_000,
          hookTimeout: 600_000,
        },
      },
      { test: { name: 'services', include: SERVICES, expect, testTimeout: 600_000, hookTimeout: 600_000 } },
    ],
  },
});
