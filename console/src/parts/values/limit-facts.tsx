import type { ReactNode } from 'react';
import type { DeployRequest } from '../../data/api/models.js';
import { Money } from './money.js';
import { At } from './time.js';

type Limits = Pick<DeployRequest, 'stop_at' | 'max_charge_micro' | 'idle_stop_minutes' | 'on_limit'>;

/** Returns the limits that are set, as facts: what each of them does, and when. */
export function limitFacts(limits: Limits): (readonly [name: string, value: ReactNode])[] {
  const { stop_at = null, max_charge_micro = null, idle_stop_minutes = null, on_limit } = limits;
  const ends = on_limit === 'destroy' ? 'Destroyed' : 'Stopped';
  return [
    ...(stop_at === null ? [] : [[`${ends} at`, <At key="stop-at" at={stop_at} />] as const]),
    ...(max_charge_micro === null
      ? []
      : [[`${ends} at a cost of`, <Money key="max" micro={max_charge_micro} />] as const]),
    ...(idle_stop_minutes === null ? [] : [[`${ends} when idle for`, `${idle_stop_minutes} min`] as const]),
  ];
}
