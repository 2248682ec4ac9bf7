import type { Ids } from '../../../shared/ids.js';
import { readMeta, writeMeta } from '../../store/meta.js';
import type { Store } from '../../store/store.js';

/** What tells this run of the control plane from every other one, its own store's copies included. */
export interface Tenure {
  /** Higher than that of every earlier run on this store. */
  epoch: number;
  /** Drawn at random: runs on two copies of a store may have the same epoch. */
  incarnation: string;
}

/**
 * Begins a run: from now on hosts that have heard of it refuse every earlier one, so that a host never has two masters,
 * whatever copies of the store are started.
 */
export function beginTenure(store: Store, ids: Ids): Tenure {
  return store.transact((tx) => {
    const epoch = Number(readMeta(tx, 'epoch') ?? 0) + 1;
    writeMeta(tx, 'epoch', String(epoch));
    return { epoch, incarnation: ids.uuid() };
  });
}

/** Whether a host has heard of a run that came after this one, or of another one beside it. */
export function isOvertaken(tenure: Tenure, heard: Tenure): boolean {
  if (heard.epoch !== tenure.epoch) return heard.epoch > tenure.epoch;
  return heard.incarnation !== '' && heard.incarnation !== tenure.incarnation;
}
