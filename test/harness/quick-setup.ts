import { refuseGrowingStatements } from './query-plans.js';

// Before every file of the quick tests.
refuseGrowingStatements();
