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
  type Insertable,
  type RawBuilder,
  type Selectable,
  type Updateable,
} from 'kysely';
import type { Schema } from './schema.js';

export { sql };

/** Builds typed statements; does not run them. */
export const query = new Kysely<Schema>({
  dialect: {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  },
});

/** Returns a statement written in SQL, for SQL that the builder does not cover. */
export function statement<Row = unknown>(text: RawBuilder<Row>): Compilable<Row> {
  return { compile: () => text.compile(query) };
}

/** Returns a subquery of the values, so that a list of any length has the same statement. */
export function listOf(values: readonly string[]): RawBuilder<string> {
  return listIn(JSON.stringify(values));
}

/** Returns a subquery of the values of a JSON array, for a statement that is compiled once. */
export function listIn(json: string): RawBuilder<string> {
  return sql<string>`(SELECT value FROM json_each(${json}))`;
}

/** A value in a statement that is compiled once. */
class Placeholder {
  constructor(readonly name: string) {}

  toJSON(): never {
    throw new Error(`"${this.name}" is only known when the statement runs: pass it as text`);
  }
}

/** Returns a placeholder for each of the parameters. */
function placeholdersOf<P extends object>(given: P): P {
  return Object.fromEntries(Object.keys(given).map((name) => [name, new Placeholder(name)])) as P;
}

/** What a statement can be given each time it runs. */
type Parameters = Readonly<Record<string, string | number | Buffer | null>>;

/**
 * Returns a function that makes a statement from its parameters. `build` runs once, and must use each parameter as a value only:
 * building and compiling a statement takes longer than most take to run.
 */
export function compileOnce<P extends Parameters, Row>(
  build: (parameters: P) => Compilable<Row>,
): (parameters: P) => Compilable<Row> {
  let compiled: CompiledQuery<Row> | undefined;
  let fixed: readonly unknown[] = [];
  return (given) => {
    if (!compiled) {
      compiled = build(placeholdersOf(given)).compile();
      fixed = compiled.parameters;
    }
    const parameters = fixed.map((value) => (value instanceof Placeholder ? given[value.name] : value));
    const statement = { ...compiled, parameters };
    return { compile: () => statement };
  };
}

/** Statements by what they do to which columns: there are as many as kinds of changes in the code. */
const shapes = new Map<string, (values: Parameters) => Compilable>();

function ofShape(shape: string, values: Parameters, build: (values: Parameters) => Compilable): Compilable {
  const make = shapes.get(shape) ?? compileOnce(build);
  shapes.set(shape, make);
  return make(values);
}

/** Returns the statement that inserts a row, which is compiled once for each set of columns. */
export function insertRow<Table extends keyof Schema>(table: Table, row: Insertable<Schema[Table]>): Compilable {
  const names = Object.keys(row);
  return ofShape(`insert ${table} ${names.join()}`, row, (values) =>
    query.insertInto(table).values(Object.fromEntries(names.map((name) => [name, values[name]])) as never),
  );
}

/** Returns the statement that changes the rows in which all columns of `where` have these values; compiled like {@link insertRow}. */
export function updateRows<Table extends keyof Schema>(
  table: Table,
  changes: Updateable<Schema[Table]>,
  where: Partial<Selectable<Schema[Table]>>,
): Compilable {
  const [changed, searched] = [Object.keys(changes), Object.keys(where)];
  const values = Object.fromEntries([
    ...changed.map((name) => [`new ${name}`, changes[name as keyof typeof changes]]),
    ...searched.map((name) => [`old ${name}`, where[name as keyof typeof where]]),
  ]) as Parameters;
  return ofShape(`update ${table} ${changed.join()} ${searched.join()}`, values, (given) => {
    const set = Object.fromEntries(changed.map((name) => [name, given[`new ${name}`]]));
    const is = searched.map((name) => sql<boolean>`${sql.ref(name)} = ${given[`old ${name}`]}`);
    return query
      .updateTable(table as 'meta')
      .set(set as never)
      .where(sql<boolean>`${sql.join(is, sql` AND `)}`);
  });
}

/** Returns the statement that selects all columns of the row with this id. */
export function rowById<Table extends Identified>(table: Table, id: string): Compilable<Selectable<Schema[Table]>> {
  return ofShape(`select ${table}`, { id }, (values) =>
    query
      .selectFrom(table as 'instances')
      .selectAll()
      .where('id', '=', values['id'] as string),
  );
}

type Identified = { [Table in keyof Schema]: Schema[Table] extends { id: string } ? Table : never }[keyof Schema];

const MAX_PREPARED = 1_000;

/** Runs compiled statements synchronously through a cache of prepared ones. */
export class SqlRunner {
  private readonly prepared = new Map<string, BetterSqlite3.Statement>();

  /** `beforeWrite` is called before each statement that writes. */
  constructor(
    private readonly connection: BetterSqlite3.Database,
    private readonly beforeWrite: () => void = () => {},
  ) {}

  all<Row>(statement: Compilable<Row>): Row[] {
    const { sql, parameters }: CompiledQuery<Row> = statement.compile();
    return this.ready(sql).all(...parameters) as Row[];
  }

  /** Returns the first row, or undefined. */
  get<Row>(statement: Compilable<Row>): Row | undefined {
    const { sql, parameters }: CompiledQuery<Row> = statement.compile();
    return this.ready(sql).get(...parameters) as Row | undefined;
  }

  /** Returns the number of changed rows. */
  run(statement: Compilable): number {
    const { sql, parameters }: CompiledQuery = statement.compile();
    return this.ready(sql).run(...parameters).changes;
  }

  private ready(sql: string): BetterSqlite3.Statement {
    const statement = this.prepare(sql);
    if (!statement.readonly) this.beforeWrite();
    return statement;
  }

  /** Returns the prepared statement. The cache is bounded, because some statements differ with each request. */
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
