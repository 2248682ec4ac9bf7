import fc from 'fast-check';
import { refuseGrowingStatements } from './query-plans.js';
import { SEED } from './test-seed.js';

// Before every file of the quick tests.
refuseGrowingStatements();
fc.configureGlobal({ seed: SEED });
