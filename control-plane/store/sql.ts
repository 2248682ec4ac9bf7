import type BetterSqlite3 from 'better-sqlite3';
import {
  sql,
  DummyDriver,
  Kysely,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type Compilable,
  type CompiledQuery,
  type RawBuilder,
} from 'kysely';
import type { Schema } from './schema.js';

export { sql };

/** Builds typed statements; executes nothing. */
export const query = new Kysely<Schema>({
  dialect: {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  },
});

/** A statement in SQL's own words, for what the builder has none for. */
export function statement<Row = unknown>(text: RawBuilder<Row>): Compilable<Row> {
  return { compile: () => text.compile(query) };
}

/** Any number of values in one and the same statement. */
export function listOf(values: readonly string[]): RawBuilder<string> {
  return sql<string>`(SELECT value FROM json_each(${JSON.stringify(values)}))`;
}

const MAX_PREPARED = 1_000;

/** Runs compiled statements synchronously through a cache of prepared ones. */
export class SqlRunner {
  private readonly prepared = new Map<string, BetterSqlite3.Statement>();

  constructor(private readonly connection: BetterSqlite3.Database) {}

  all<Row>(statement: Compilable<Row>): Row[] {
    const { sql, parameters }: CompiledQuery<Row> = statement.compile();
    return this.prepare(sql).all(...parameters) as Row[];
  }

  /** The first row, or undefined. */
  get<Row>(statement: Compilable<Row>): Row | undefined {
    const { sql, parameters }: CompiledQuery<Row> = statement.compile();
    return this.prepare(sql).get(...parameters) as Row | undefined;
  }

  /** The number of rows changed. */
  run(statement: Compilable): number {
    const { sql, parameters }: CompiledQuery = statement.compile();
    return this.prepare(sql).run(...parameters).changes;
  }

  /** The cache is bounded: what is asked in ever new words must not stay for ever. */
  private prepare(sql: string): BetterSqlite3.Statement {
    let statement = this.prepared.get(sql);
    if (!statement) {
      statement = this.connection.prepare(sql);
      this.prepared.set(sql, statement);
      const [oldest] = this.prepared.keys();
      if (this.prepared.size > MAX_PREPARED && oldest !== undefined) this.prepared.delete(oldest);
    }
    return statement;
  }
}
