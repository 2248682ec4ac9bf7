import { it } from 'vitest';
import { cases, provoke } from './provoke.js';

const ALERT = 'GpurentEventLoopLags';

it.each(cases[ALERT] ?? [])(`${ALERT}: $how`, (one) => provoke(ALERT, one));
