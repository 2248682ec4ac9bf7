import { CAP_KINDS, capsFrom, isPeriod, type Caps, type Period } from '../../../domain/money/spend-cap.js';
import type { Row } from '../../../store/schema.js';
import { compileOnce, listIn, query } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';

/** A cap of an organization or an API key, of one kind. */
export type Cap = Row<'spend_caps'>;
/** A cap on what is spent in a period. */
export type PeriodCap = Cap & { kind: Period };

export function isOnPeriod(cap: Cap): cap is PeriodCap {
  return isPeriod(cap.kind);
}

/** Returns the caps of some organizations and API keys, in the order of these and then of {@link CAP_KINDS}. */
export function findCapRows(tx: Tx, owners: readonly string[]): Cap[] {
  const places = new Map(owners.map((id, index) => [id, index * CAP_KINDS.length]));
  const place = ({ owner_id, kind }: Cap) => (places.get(owner_id) ?? 0) + CAP_KINDS.indexOf(kind);
  return tx.all(capsAmong({ owners: JSON.stringify(owners) })).sort((a, b) => place(a) - place(b));
}

const capsAmong = compileOnce(({ owners }: { owners: string }) =>
  query.selectFrom('spend_caps').selectAll().where('owner_id', 'in', listIn(owners)),
);

/** Returns the caps that some rows of one owner are. */
export function capsIn(rows: readonly Cap[]): Caps {
  return capsFrom((kind) => rows.find((row) => row.kind === kind)?.amount_micro ?? null);
}
