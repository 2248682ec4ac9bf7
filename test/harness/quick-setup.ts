import fc from 'fast-check';
import { refuseGrowingStatements } from './query-plans.js';

// Before every file of the quick tests.
refuseGrowingStatements();
// vitest.config.js says where the seed comes from.
fc.configureGlobal({ seed: Number(process.env['TEST_SEED']) });
