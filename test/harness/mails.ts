import { query } from '../../control-plane/store/sql.js';
import type { Row } from '../../control-plane/store/schema.js';
import { eventually } from '../../scripts/eventually.js';
import type { TestControlPlane } from './control-plane.js';

/** For so long a mail that is on its way is not sent again. */
const LEASE_MS = 10 * 60_000;

const queued = query.selectFrom('mails').selectAll().orderBy('created_at').orderBy('about');

/** Every mail of the control plane, the oldest first, but those to the operator, who signs in in every test. */
export function mailsOf({ core }: TestControlPlane): Row<'mails'>[] {
  return core.platform.store.transact((tx) => tx.all(queued)).filter(({ address }) => !address.startsWith('operator@'));
}

/** Tells whether a mail is on its way. */
export function isMailing({ core }: TestControlPlane): boolean {
  return queuedIn(core).some(
    ({ attempted_at, next_attempt_at }) => attempted_at !== null && next_attempt_at === attempted_at + LEASE_MS,
  );
}

function queuedIn({ platform }: TestControlPlane['core']): Row<'mails'>[] {
  return platform.store.transact((tx) => tx.all(queued.where('state', '=', 'queued')));
}

/** How long the others wait once the server could not be reached: for so long nothing is sent until the clock moves. */
const PAUSE_MS = 5_000;
const MOST_PAUSES = 10;

/** Resolves once no mail is on its way or due: for before the clock moves by more than a mail may take. */
export async function mailsAreSettled(test: TestControlPlane): Promise<void> {
  const isDue = () => queuedIn(test.core).some((mail) => mail.next_attempt_at <= test.clock.now());
  const areSettled = () => !isMailing(test) && !isDue();
  for (let pauses = 0; pauses < MOST_PAUSES; pauses++) {
    // On a busy machine the server can be late for a connection.
    if (await isSoon(areSettled)) return;
    if (!isMailing(test)) test.advance(PAUSE_MS);
  }
  await eventually('no mail on its way', areSettled);
}

function isSoon(look: () => boolean): Promise<boolean> {
  return eventually('it', look, PAUSE_MS).catch(() => false);
}
