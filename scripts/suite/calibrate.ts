import Database from 'better-sqlite3';
import { appendFileSync } from 'node:fs';

/**
 * What `work` takes on the machine of factor 1, in processor seconds. On that machine the quick tests of commit c7d4b35 took 698.
 * Measured by both on one machine: the ratio holds.
 */
const REFERENCE_S = 0.2;
const ROUNDS = 5;

/** Computes as the tests do: half in JavaScript that makes and drops many objects, half in SQLite. */
function work(): void {
  const rows = Array.from({ length: 4_000 }, (_, index) => ({
    id: `row-${index}`,
    at: index * 37,
    tags: ['a', 'b', `${index % 97}`],
  }));
  const byTag = new Map<string, number>();
  for (let round = 0; round < 12; round++) {
    for (const { id, at, tags } of JSON.parse(JSON.stringify(rows)) as typeof rows) {
      const key = `${tags.join('')}${id.slice(-2)}`;
      byTag.set(key, (byTag.get(key) ?? 0) + at);
    }
    rows.sort((one, other) => ((one.at * (round + 7)) % 1_009) - ((other.at * (round + 7)) % 1_009));
  }
  const db = new Database(':memory:');
  db.exec('CREATE TABLE t (id TEXT PRIMARY KEY, at INTEGER, body TEXT) STRICT; CREATE INDEX by_at ON t (at)');
  const insert = db.prepare('INSERT INTO t VALUES (?, ?, ?)');
  const find = db.prepare('SELECT id, body FROM t WHERE at >= ? ORDER BY at LIMIT 20');
  const write = db.transaction((row: (typeof rows)[number]) => insert.run(row.id, row.at, JSON.stringify(row)));
  for (const row of rows) write(row);
  for (let at = 0; at < 4_000; at++) find.all(at * 37);
  db.close();
}

/** Returns how many processor seconds the work takes: the median of some rounds, after one that warms up. */
function measure(): number {
  work();
  const took = Array.from({ length: ROUNDS }, () => {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1e6;
  });
  return took.sort((one, other) => one - other)[Math.floor(ROUNDS / 2)] ?? NaN;
}

const [file] = process.argv.slice(2);
const factor = measure() / REFERENCE_S;
if (file !== undefined) appendFileSync(file, `${factor.toFixed(3)}\n`);
process.stdout.write(`machine ${factor.toFixed(2)} of the reference\n`);
