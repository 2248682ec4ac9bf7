import { it } from 'vitest';
import { cases, provoke } from './provoke.js';

const ALERT = 'GpurentEventLoopLags';

const all = (cases[ALERT] ?? []).map((one) => [one.how, one] as const);

it.each(all)(`${ALERT}: %s`, (_, one) => provoke(ALERT, one));
