import { MINUTE_MS } from '../../../shared/time.js';
import type { Operator } from '../../domain/caller.js';
import { Refusal } from '../../domain/refusal.js';
import { updateRows } from '../../store/sql.js';
import { recordEvent } from '../events/record.js';
import { recordAudit } from '../system/audit.js';
import type { Core } from '../system/platform.js';
import { findMachine } from './machines.js';
import { rentersOf } from './maintenance.js';

/** How long after a notice the next one of the same machine is refused. */
const PAUSE_MS = 10 * MINUTE_MS;

/**
 * Tells, for an operator, each organization with an instance on a machine something that is not destroyed: one event each, which is also
 * mailed to members who want that. Returns the number of organizations. Refuses with MACHINE_NOT_FOUND, and with RATE_LIMITED a second
 * notice of the machine within ten minutes.
 */
export function sendNotice(
  { store }: Core,
  operator: Operator,
  id: string,
  message: string,
): { organizations: number } {
  return store.transact((tx) => {
    const { name, noticed_at } = findMachine(tx, id);
    const waitMs = noticed_at === null ? 0 : Math.min(noticed_at + PAUSE_MS - tx.now, PAUSE_MS);
    if (waitMs > 0) {
      const retry_after_seconds = Math.ceil(waitMs / 1_000);
      const words = 'the renters of this machine were told something within the last ten minutes';
      throw new Refusal('RATE_LIMITED', `${words}; try again in ${retry_after_seconds} s`, { retry_after_seconds });
    }
    tx.run(updateRows('machines', { noticed_at: tx.now }, { id }));
    const renters = rentersOf(tx, id);
    for (const [organization, instance_ids] of renters) {
      const data = { machine_id: id, machine_name: name, instance_ids, message };
      recordEvent(tx, organization, 'machine.notice', `machines/${id}`, data);
    }
    recordAudit(tx, operator, 'machine.notice', id, { message, organizations: renters.size });
    return { organizations: renters.size };
  });
}
