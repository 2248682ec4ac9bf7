import type { Ids } from '../../../shared/ids.js';
import { readMeta, writeMeta } from '../../store/meta.js';
import type { Store } from '../../store/store.js';

/** Identifies one run of a control plane, also among runs on copies of its database. */
export interface Term {
  /** Higher than the epoch of every earlier run on this database. */
  epoch: number;
  /** Random, because runs on two copies of a database can have the same epoch. */
  incarnation: string;
}

/**
 * Begins a run with a higher epoch. A host that has seen it refuses every earlier run, so two control planes on copies of one
 * database never both control a host.
 */
export function beginTerm(store: Store, ids: Ids): Term {
  return store.transact((tx) => {
    const epoch = Number(readMeta(tx, 'epoch') ?? 0) + 1;
    writeMeta(tx, 'epoch', String(epoch));
    return { epoch, incarnation: ids.uuid() };
  });
}

/** Tells whether a host has heard of a later run than this one, or of another run with the same epoch. */
export function isSuperseded(term: Term, heard: Term): boolean {
  if (heard.epoch !== term.epoch) return heard.epoch > term.epoch;
  return heard.incarnation !== '' && heard.incarnation !== term.incarnation;
}
