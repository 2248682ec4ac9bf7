import type { Ids } from '../../../shared/ids.js';
import { readMeta, writeMeta } from '../../store/meta.js';
import type { Store } from '../../store/store.js';

/** What tells this run of the control plane from every other one, its own store's copies included. */
export interface Term {
  /** Higher than that of every earlier run on this store. */
  epoch: number;
  /** Drawn at random: runs on two copies of a store may have the same epoch. */
  incarnation: string;
}

/**
 * Begins a run: from now on hosts that have heard of it refuse every earlier one, so that a host never has two masters,
 * whatever copies of the store are started.
 */
export function beginTerm(store: Store, ids: Ids): Term {
  return store.transact((tx) => {
    const epoch = Number(readMeta(tx, 'epoch') ?? 0) + 1;
    writeMeta(tx, 'epoch', String(epoch));
    return { epoch, incarnation: ids.uuid() };
  });
}

/** Whether a host has heard of a run that came after this one, or of another one beside it. */
export function isSuperseded(term: Term, heard: Term): boolean {
  if (heard.epoch !== term.epoch) return heard.epoch > term.epoch;
  return heard.incarnation !== '' && heard.incarnation !== term.incarnation;
}
