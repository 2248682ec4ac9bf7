import { messageOf } from '../../../shared/coded-error.js';
import { writeMeta } from '../../store/meta.js';
import type { Core } from './platform.js';

/** How long one check is reused: anybody can ask without a credential, and each check writes to the disk. */
const GOOD_FOR_MS = 1_000;

/** Checks whether the control plane can serve requests by a durable write to the database. A result is reused for a second. */
export class Readiness {
  private fault: string | undefined;
  private until = -Infinity;

  constructor(private readonly platform: Pick<Core, 'store' | 'clock'>) {}

  /** Returns the reason why the database cannot be written, or undefined if it can. */
  look(): string | undefined {
    const { clock } = this.platform;
    if (clock.monotonic() < this.until) return this.fault;
    this.fault = this.write();
    this.until = clock.monotonic() + GOOD_FOR_MS;
    return this.fault;
  }

  private write(): string | undefined {
    try {
      const { store } = this.platform;
      store.alone(() => store.transact((tx) => writeMeta(tx, 'ready_at', String(tx.now))));
      return undefined;
    } catch (error) {
      return messageOf(error);
    }
  }
}
