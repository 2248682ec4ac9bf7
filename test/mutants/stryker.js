/** What both parts have in common. Stryker works in a copy; paths are from the repository root. */
export const common = (part) => ({
  plugins: ['@stryker-mutator/vitest-runner'],
  testRunner: 'vitest',
  vitest: { configFile: `test/mutants/vitest.${part}.config.js` },
  ignorePatterns: ['/dist', '/.local', '/docs', '/images', '/templates', '/packaging', '/release', '*.tsbuildinfo'],
  tempDirName: '.local/stryker',
  reporters: ['progress-append-only', 'clear-text', 'json'],
  jsonReporter: { fileName: `.local/mutation/${part}.json` },
  clearTextReporter: { allowColor: false, reportTests: false, logTests: false },
  allowConsoleColors: false,
  concurrency: 1,
});
