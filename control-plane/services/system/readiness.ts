import { messageOf } from '../../../shared/coded-error.js';
import { writeMeta } from '../../store/meta.js';
import type { Platform } from './platform.js';

/** Anybody may ask, and writing costs. */
const GOOD_FOR_MS = 1_000;

/** Whether use cases can be carried out at this moment: something is written, durably, and taken for an answer for a second. */
export class Readiness {
  private fault: string | undefined;
  private until = -Infinity;

  constructor(private readonly platform: Pick<Platform, 'store' | 'clock'>) {}

  /** Why they cannot; undefined where they can. */
  look(): string | undefined {
    const { clock } = this.platform;
    if (clock.monotonic() < this.until) return this.fault;
    this.fault = this.write();
    this.until = clock.monotonic() + GOOD_FOR_MS;
    return this.fault;
  }

  private write(): string | undefined {
    try {
      this.platform.store.transact((tx) => writeMeta(tx, 'ready_at', String(tx.now)));
      return undefined;
    } catch (error) {
      return messageOf(error);
    }
  }
}
