import BetterSqlite3 from 'better-sqlite3';
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { afterEach, expect, it } from 'vitest';
import { migrations } from '../../control-plane/store/migrations/index.js';
import { RELEASES, leftBy } from '../harness/releases.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const read = (file: string) => readFileSync(`${ROOT}${file}`, 'utf8');
const TYPES = read('control-plane/store/schema.ts');
/** Types of schema.ts that are numbers; every other one that it imports is a text of a closed list. */
const NUMBERS = ['number', 'Flag'];

/** A column, as the types have it or as the database has it. */
interface Column {
  type: 'INTEGER' | 'TEXT' | 'BLOB';
  isNullable: boolean;
}

const open: BetterSqlite3.Database[] = [];
afterEach(() => open.splice(0).forEach((database) => database.close()));

/** A database after the first `count` migrations. */
function migrated(count: number): BetterSqlite3.Database {
  const database = new BetterSqlite3(':memory:');
  open.push(database);
  for (const { sql } of migrations.slice(0, count)) database.exec(sql);
  return database;
}

const tablesOf = (database: BetterSqlite3.Database) =>
  database
    .prepare<[], { name: string }>("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .all()
    .map(({ name }) => name);

interface ColumnInfo {
  name: string;
  type: Column['type'];
  notnull: number;
  dflt_value: string | null;
  pk: number;
}

const infoOf = (database: BetterSqlite3.Database, table: string) =>
  database.prepare<[string], ColumnInfo>('SELECT * FROM pragma_table_info(?)').all(table);

/** `table.column` with what each is in the database. */
function columnsInSql(database: BetterSqlite3.Database): Record<string, Column> {
  return Object.fromEntries(
    tablesOf(database).flatMap((table) =>
      infoOf(database, table).map(({ name, type, notnull, pk }) => [
        `${table}.${name}`,
        { type, isNullable: notnull === 0 && pk === 0 },
      ]),
    ),
  );
}

function columnOf(type: ts.TypeNode): Column & { isGenerated: boolean } {
  if (ts.isTypeReferenceNode(type) && type.typeName.getText() === 'Generated') {
    const [inner] = type.typeArguments ?? [];
    if (inner) return { ...columnOf(inner), isGenerated: true };
  }
  const parts = ts.isUnionTypeNode(type) ? [...type.types] : [type];
  const values = parts.map((part) => part.getText()).filter((text) => text !== 'null');
  const isNumber = (text: string) => NUMBERS.includes(text) || /^\d+$/.test(text);
  return {
    type: values.every(isNumber) ? 'INTEGER' : values.includes('Buffer') ? 'BLOB' : 'TEXT',
    isNullable: values.length < parts.length,
    isGenerated: false,
  };
}

/** `table.column` with its type, as schema.ts declares it. */
function typesInSchema(): Record<string, ts.TypeNode> {
  const source = ts.createSourceFile('schema.ts', TYPES, ts.ScriptTarget.Latest, true);
  const schema = source.statements.find((each) => ts.isInterfaceDeclaration(each) && each.name.text === 'Schema');
  if (!schema || !ts.isInterfaceDeclaration(schema)) throw new Error('schema.ts declares no Schema');
  const members = (owner: ts.InterfaceDeclaration | ts.TypeLiteralNode) => owner.members.filter(ts.isPropertySignature);
  return Object.fromEntries(
    members(schema).flatMap((table) =>
      members(table.type as ts.TypeLiteralNode).flatMap(({ name, type }) =>
        type ? [[`${table.name.getText()}.${name.getText()}`, type]] : [],
      ),
    ),
  );
}

function columnsInTypes(): Record<string, Column & { isGenerated: boolean }> {
  return Object.fromEntries(Object.entries(typesInSchema()).map(([place, type]) => [place, columnOf(type)]));
}

it('the types of the store are those of the database: tables, columns, and which may be null', () => {
  const types = Object.entries(columnsInTypes()).map(([name, { type, isNullable }]) => [name, { type, isNullable }]);
  expect(types.length).toBeGreaterThan(150);
  expect(Object.fromEntries(types)).toEqual(columnsInSql(migrated(migrations.length)));
});

/** Texts between quotes, in their order. */
const quotedIn = (text: string) => [...text.matchAll(/'([^']+)'/g)].map(([, value = '']) => value);

/** `table.column` with the only texts that it may have, as the database says. */
function textsInSql(database: BetterSqlite3.Database): Record<string, string[]> {
  const tables = database
    .prepare<[], { name: string; sql: string }>("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
    .all();
  return Object.fromEntries(
    tables.flatMap(({ name, sql }) =>
      [...sql.matchAll(/CHECK\s*\(\s*(\w+)\s+IN\s*\(([^)]*'[^)]*)\)/g)].map(([, column = '', list = '']) => [
        `${name}.${column}`,
        quotedIn(list).sort(),
      ]),
    ),
  );
}

/** The texts of a type that schema.ts imports: a union, or the elements of a list. */
function textsOf(name: string): string[] {
  const imported = new RegExp(`import type \\{[^}]*\\b${name}\\b[^}]*\\} from '\\.\\./(.*)\\.js'`).exec(TYPES);
  if (!imported) return [];
  const source = read(`control-plane/${imported[1]}.ts`);
  const [, type = ''] = new RegExp(`export type ${name} =([^;]*);`).exec(source) ?? [];
  const [, list] = /typeof (\w+)/.exec(type) ?? [];
  return quotedIn(list === undefined ? type : (new RegExp(`const ${list} = ([^;]*);`).exec(source)?.[1] ?? ''));
}

/** The same, as schema.ts declares it. */
function textsInTypes(): Record<string, string[]> {
  const texts = (type: ts.TypeNode): string[] => {
    if (ts.isUnionTypeNode(type)) return type.types.flatMap(texts);
    if (ts.isLiteralTypeNode(type)) return quotedIn(type.getText());
    return ts.isTypeReferenceNode(type) ? textsOf(type.typeName.getText()) : [];
  };
  const closed = Object.entries(typesInSchema()).map(([place, type]) => [place, texts(type).sort()] as const);
  return Object.fromEntries(closed.filter(([, values]) => values.length > 0));
}

/** Columns whose texts grow with releases: a CHECK of them would recreate the table each time. */
const GROWING = ['mails.kind', 'mail_preferences.category', 'spend_caps.kind'];

it('the texts that a column may have are the same in the types and in the database', () => {
  const inSql = textsInSql(migrated(migrations.length));
  const inTypes = Object.entries(textsInTypes());
  const growing = inTypes.filter(([column]) => GROWING.includes(column));
  expect(growing.map(([column]) => column).sort()).toEqual([...GROWING].sort());
  expect(inTypes.length).toBeGreaterThan(12);
  expect(Object.fromEntries(inTypes.filter((one) => !growing.includes(one)))).toEqual(inSql);
});

it('what the types let an insert leave out has a default in the database', () => {
  const database = migrated(migrations.length);
  const generated = Object.entries(columnsInTypes()).filter(([, { isGenerated }]) => isGenerated);
  expect(generated.length).toBeGreaterThan(5);
  const without = generated.filter(([place]) => {
    const [table = '', name] = place.split('.');
    const column = infoOf(database, table).find((each) => each.name === name);
    return column?.dflt_value === null && !(column.pk === 1 && column.type === 'INTEGER');
  });
  expect(without).toEqual([]);
});

it('every migration is in the list, at the place of its number', () => {
  const files = readdirSync(`${ROOT}control-plane/store/migrations`).filter((name) => /^\d{4}-.*\.ts$/.test(name));
  expect(migrations.map(({ name }) => `${name}.ts`)).toEqual(files.sort());
  expect(migrations.map(({ name }) => Number(name.slice(0, 4)))).toEqual(migrations.map((_, index) => index + 1));
});

it.each(RELEASES)('the migrations of release %s are as they were released', (release) => {
  const released = new BetterSqlite3(leftBy(release, 'store.db'), { readonly: true });
  open.push(released);
  const version = released.pragma('user_version', { simple: true }) as number;
  const made = (database: BetterSqlite3.Database) =>
    database.prepare('SELECT type, name, sql FROM sqlite_master ORDER BY type, name').all();
  expect(made(migrated(version))).toEqual(made(released));
});
