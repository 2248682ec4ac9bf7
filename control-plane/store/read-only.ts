import BetterSqlite3 from 'better-sqlite3';
import { existsSync } from 'node:fs';
import { SetupError } from '../../shared/coded-error.js';
import { fileTroubleOf, requireReadable } from '../../shared/file-access.js';
import { migrations } from './migrations/index.js';
import { SqlRunner } from './sql.js';

/** The part of SqlRunner that only reads. */
export type Reader = Pick<SqlRunner, 'all' | 'get'>;

/**
 * Reads the database as it is at one moment. It takes no lock and changes nothing, so it works while a control plane runs.
 * Throws SetupError when there is no database, it cannot be read, or it has the schema of another release.
 */
export function readDatabase<T>(file: string, work: (reader: Reader) => T): T {
  if (!existsSync(file)) throw new SetupError(`there is no database ${file}; set GPURENT_DATABASE`);
  requireReadable(file);
  try {
    const connection = new BetterSqlite3(file, { readonly: true, timeout: 5_000 });
    try {
      requireKnownSchema(connection, file);
      return connection.transaction(() => work(new SqlRunner(connection))).deferred();
    } finally {
      connection.close();
    }
  } catch (error) {
    if (!(error instanceof BetterSqlite3.SqliteError)) throw error;
    throw new SetupError(`the database ${file} cannot be read: ${fileTroubleOf(error)}`, { cause: error });
  }
}

function requireKnownSchema(connection: BetterSqlite3.Database, file: string): void {
  const version = connection.pragma('user_version', { simple: true }) as number;
  if (version === migrations.length) return;
  const schemas = `schema ${version}, this release has ${migrations.length}`;
  throw new SetupError(
    version < migrations.length
      ? `${file} was written by an older release (${schemas}): start the daemon, or run "gpurent-control-plane migrate"`
      : `${file} was written by a newer release (${schemas}): use the command of that release`,
  );
}
