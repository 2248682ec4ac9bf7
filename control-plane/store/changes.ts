import type BetterSqlite3 from 'better-sqlite3';

interface Watched {
  /** The table, if it is not the name of the entry. */
  table?: string;
  /** What a listener is told of a row, as SQL; `row` stands for the row. */
  keys: readonly string[];
  /** The only columns whose updates are told of, where the value is another one; without it, all updates but those of `exceptOf`. */
  of?: readonly string[];
  exceptOf?: readonly string[];
}

/** The tables, or parts of them, whose changes can be listened to. */
const WATCHED = {
  api_keys: { keys: ['row.secret_hash', 'row.organization_id'] },
  events: { keys: ['row.stream', 'row.type'], of: ['stream'] },
  gpu_claims: { keys: ['row.machine_id'] },
  gpus: { keys: ['row.machine_id'] },
  instances: { keys: ['row.id', 'row.organization_id', 'row.machine_id'] },
  instance_disks: { table: 'instances', keys: ['row.machine_id'], of: ['disk_gb', 'status', 'machine_id'] },
  instance_lists: {
    table: 'instances',
    keys: ['row.organization_id'],
    of: ['status', 'created_at', 'organization_id'],
  },
  machine_days: { keys: ['CAST(row.day AS TEXT)'] },
  machines: { keys: ['row.id'], exceptOf: ['last_seen_at'] },
  machine_names: { table: 'machines', keys: ['row.id'], of: ['name', 'region'] },
  memberships: { keys: ['row.user_id'] },
  offer_models: { table: 'offers', keys: ['row.machine_id'], of: ['gpu_model'] },
  offers: { keys: ['row.machine_id'] },
  organizations: { keys: ['row.id'], of: ['payments_frozen_at', 'second_factor_since'] },
  quarantine: { keys: ['row.machine_id'] },
  quarantine_gpus: { keys: ['(SELECT machine_id FROM quarantine WHERE id = row.quarantine_id)'] },
  sessions: { keys: ['row.token_hash'], exceptOf: ['last_used_at', 'last_network'] },
  users: { keys: ['row.id'] },
} as const satisfies Record<string, Watched>;

export type WatchedTable = keyof typeof WATCHED;

/** Called with the keys of a changed row: those of {@link WATCHED}, in that order. */
export type ChangeListener = (...keys: string[]) => void;

/**
 * Tells listeners of each row that a statement inserts, updates or deletes, at once and whichever use case does it: by triggers of the
 * connection, which no statement can bypass. A listener must not use the store.
 */
export class Changes {
  private readonly listeners = new Map<string, ChangeListener[]>();

  constructor(connection: BetterSqlite3.Database) {
    connection.function('row_changed', { varargs: true }, (table: unknown, ...keys: unknown[]) => {
      for (const listener of this.listeners.get(table as string) ?? []) listener(...(keys as string[]));
      return null;
    });
    for (const [what, watched] of Object.entries<Watched>(WATCHED))
      for (const trigger of triggersOf(connection, what, watched)) connection.exec(trigger);
  }

  listen(table: WatchedTable, listener: ChangeListener): void {
    const others = this.listeners.get(table) ?? [];
    this.listeners.set(table, [...others, listener]);
  }
}

/** Returns the condition that one of these columns has another value. */
function differs(columns: readonly string[]): string {
  return columns.map((name) => `${name.replace('row.', 'OLD.')} IS NOT ${name.replace('row.', 'NEW.')}`).join(' OR ');
}

function triggersOf(
  connection: BetterSqlite3.Database,
  what: string,
  { keys, table = what, ...watched }: Watched,
): string[] {
  const columns = (connection.pragma(`table_info(${table})`) as { name: string }[]).map(({ name }) => name);
  // A store that was opened with fewer migrations lacks newer tables.
  if (columns.length === 0) return [];
  const of = watched.of ?? columns.filter((name) => !watched.exceptOf?.includes(name));
  const tell = (row: 'NEW' | 'OLD') =>
    [`'${what}'`, ...keys.map((key) => key.replaceAll('row.', `${row}.`))].join(', ');
  const trigger = (name: string, event: string, body: string) =>
    `CREATE TEMP TRIGGER ${what}_${name} AFTER ${event} ON main.${table} BEGIN ${body}; END`;
  const added = `SELECT row_changed(${tell('NEW')})`;
  const removed = `SELECT row_changed(${tell('OLD')})`;
  const isMoved = differs(keys.filter((key) => key.startsWith('row.')));
  // A host that connects again writes its name again.
  const changed = watched.of ? `${added} WHERE ${differs(of.map((name) => `row.${name}`))}` : added;
  return [
    trigger('added', 'INSERT', added),
    trigger('changed', `UPDATE OF ${of.join(', ')}`, isMoved ? `${changed}; ${removed} WHERE ${isMoved}` : changed),
    trigger('removed', 'DELETE', removed),
  ];
}
