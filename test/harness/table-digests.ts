import BetterSqlite3 from 'better-sqlite3';
import { createHash } from 'node:crypto';
import { serialize } from 'node:v8';

/** A digest of each table of a database, less the moments at which credentials were used. */
export class TableDigests {
  private database: BetterSqlite3.Database | undefined;
  private last: { version: number; digests: Record<string, string> } | undefined;

  constructor(private readonly file: string) {}

  /** Returns the digests of what is committed: the same ones as long as nobody has committed anything. */
  read(): Readonly<Record<string, string>> {
    const database = (this.database ??= new BetterSqlite3(this.file, { readonly: true }));
    return database.transaction(() => {
      // SQLite changes it whenever another connection has committed.
      const version = database.pragma('data_version', { simple: true }) as number;
      if (this.last?.version !== version) this.last = { version, digests: digestsOf(database) };
      return this.last.digests;
    })();
  }

  /** Lets go of the file, which another one may replace then. */
  close(): void {
    this.database?.close();
    this.database = undefined;
    this.last = undefined;
  }
}

export function tablesOf(database: BetterSqlite3.Database): string[] {
  const tables = database.prepare<[], { name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  return tables.map(({ name }) => name);
}

function digestsOf(database: BetterSqlite3.Database): Record<string, string> {
  return Object.fromEntries(tablesOf(database).map((name) => [name, digestOf(database, name)]));
}

function digestOf(database: BetterSqlite3.Database, table: string): string {
  const rows = database
    .prepare(`SELECT ${columnsOf(database, table)} FROM ${table}`)
    .raw()
    .all();
  return `${rows.length} rows, ${createHash('sha256').update(serialize(rows)).digest('hex')}`;
}

const comparedColumns = new Map<string, string>();

/** Returns the columns of a table that a digest covers. */
function columnsOf(database: BetterSqlite3.Database, table: string): string {
  let names = comparedColumns.get(table);
  if (names === undefined) {
    const isUse = (name: string) => name === 'last_used_at' || (table === 'sessions' && name === 'expires_at');
    const columns = database.pragma(`table_info(${table})`) as { name: string }[];
    names = columns.flatMap(({ name }) => (isUse(name) ? [] : `"${name}"`)).join();
    comparedColumns.set(table, names);
  }
  return names;
}
