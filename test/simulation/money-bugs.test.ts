import { describe } from 'vitest';
import { MONEY_BUGS } from './money-bugs.js';
import { describeBugs } from './describe-bugs.js';

describe('a bug that is put in where money is counted is caught', () => describeBugs(MONEY_BUGS));
