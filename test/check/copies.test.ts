import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ageOf, readCopies } from '../../control-plane/store/copies.js';

const SCRIPT = fileURLToPath(new URL('../../packaging/gpurent-copies', import.meta.url));
const OLD = 'gpurent-2026-01-0';
const ONLY_MADE = /^gpurent-copies: made gpurent-\S+\.db\n$/;
const STAMP = /^gpurent-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ\.db$/;

/** What the script calls, in place of a control plane, of other users, of disks and of servers. */
const STUBS = {
  runuser: 'shift 3; exec "$@"',
  'gpurent-control-plane': `
    [ ! -e "$FOLDER/broken" ] || { echo half >"$2"; exit 1; }
    [ "$1" = backup ] && [ ! -e "$2" ] && echo 'a database' >"$2"`,
  // Every path below "mounted" is on a disk of its own.
  stat: 'case "$4" in */mounted*) echo 2 ;; *) echo 1 ;; esac',
  sftp: `
    # As OpenSSH does: -q hides why a server was not reached, and what may fail still says that it has.
    if [ -e "$FOLDER/away" ]; then
      [[ " $* " == *' -q '* ]] || echo 'no route to host' >&2
      exit 255
    fi
    printf '%s ' "$@" >"$FOLDER/asked"
    cd "$FOLDER/remote"
    while read -r command one two three; do
      case "$command" in
      -mkdir) mkdir "$FOLDER/remote$one" 2>/dev/null || printf 'remote mkdir "%s": Failure\\r\\n' "$one" >&2 ;;
      -chmod) chmod "$one" "$FOLDER/remote$two" ;;
      cd) cd "$FOLDER/remote$one" || exit 1 ;;
      -rm) rm $one 2>/dev/null || printf 'remote delete %s: No such file or directory\\r\\n' "$one" >&2 ;;
      rm) rm "$one" || exit 1 ;;
      put) [ "$one" = -f ] && cp "$two" "$three" || exit 1 ;;
      chmod) chmod "$one" "$two" || exit 1 ;;
      rename) mv -n "$one" "$two" || exit 1 ;;
      ls) ls -1 | sed 's/$/\\r/' ;;
      *) exit 1 ;;
      esac
    done`,
};

let folder: string;
let copies: string;
let database: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-copies-'));
  copies = join(folder, 'copies');
  database = join(folder, 'gpurent.db');
  for (const name of ['etc', 'stubs', 'remote', 'mounted']) mkdirSync(join(folder, name));
  for (const [name, script] of Object.entries(STUBS))
    writeFileSync(join(folder, 'stubs', name), `#!/bin/bash\n${script}\n`, { mode: 0o755 });
  writeFileSync(join(folder, 'etc/control-plane.conf'), `GPURENT_DATABASE=${database}\n`);
  set();
});
afterEach(() => rmSync(folder, { recursive: true }));

const set = (...lines: string[]) =>
  writeFileSync(join(folder, 'etc/copies.conf'), [`GPURENT_COPIES_FOLDER=${copies}`, ...lines].join('\n'));

/** As cron runs it. */
function run(): { status: number | null; said: string } {
  const env = {
    PATH: `${folder}/stubs:/usr/bin:/bin`,
    FOLDER: folder,
    GPURENT_COPIES_CONFIG: `${folder}/etc/copies.conf`,
  };
  const { status, stderr } = spawnSync(SCRIPT, { env, encoding: 'utf8' });
  return { status, said: stderr };
}

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
const databases = (at: string) => readdirSync(at).filter((name) => name.endsWith('.db'));
/** The age of the newest copy, in days, of each place. */
const ages = () => readCopies(database).map((place) => [place.target, ageOf(place, Date.now()) / 86_400_000]);

describe('a copy', () => {
  it('is private, has database and settings, and is made by the path of cron', () => {
    mkdirSync(copies, { mode: 0o755 });
    expect(run()).toEqual({
      status: 0,
      said: expect.stringMatching(ONLY_MADE) as string,
    });
    const [made = ''] = databases(copies);
    expect(made).toMatch(STAMP);
    const settings = join(copies, made.replace(/^gpurent(.*)\.db$/, 'settings$1.tar.gz'));
    expect([copies, join(copies, made), settings].map(modeOf)).toEqual(['700', '600', '600']);
    expect(readFileSync(join(copies, made), 'utf8')).toBe('a database\n');
    const listed = spawnSync('tar', ['-tzf', settings], { encoding: 'utf8' }).stdout;
    expect(listed).toContain(`${folder.slice(1)}/etc/control-plane.conf\n`);
    expect(ages()).toEqual([[copies, expect.closeTo(0, 2)]]);
  });

  it('is made where a run that was killed has left half of one', () => {
    mkdirSync(copies);
    const left = [`${database}.copying`, `${copies}/${OLD}1T00-00-00Z.db.part`, `${copies}/settings-x.tar.gz.part`];
    for (const file of left) writeFileSync(file, 'half');
    expect(run()).toMatchObject({ status: 0 });
    expect(left.filter((file) => existsSync(file))).toEqual([]);
    expect(databases(copies)).toHaveLength(1);
  });

  it('that fails leaves nothing, deletes nothing, and is known to fail', () => {
    set('GPURENT_COPIES_KEEP=1', `GPURENT_COPIES_TO=${folder}/mounted`);
    mkdirSync(copies);
    writeFileSync(join(copies, `${OLD}1T00-00-00Z.db`), 'older');
    writeFileSync(join(folder, 'broken'), '');
    expect(run()).toEqual({ status: 1, said: expect.stringContaining(`no copy was made in ${copies}`) as string });
    expect(readdirSync(copies).filter((name) => name !== '.lock')).toEqual([`${OLD}1T00-00-00Z.db`]);
    expect(existsSync(`${database}.copying`)).toBe(false);
    expect(ages()).toEqual([
      [copies, Infinity],
      [`${folder}/mounted`, Infinity],
    ]);
  });

  it('pushes out the oldest, and no other file', () => {
    set('GPURENT_COPIES_KEEP=2');
    mkdirSync(copies);
    for (const day of [1, 2, 3]) {
      writeFileSync(join(copies, `${OLD}${day}T00-00-00Z.db`), '');
      writeFileSync(join(copies, `settings-2026-01-0${day}T00-00-00Z.tar.gz`), '');
    }
    writeFileSync(join(copies, 'gpurent-2026-01-01.db'), '');
    expect(run()).toMatchObject({ status: 0 });
    const kept = databases(copies);
    expect(kept).toEqual(['gpurent-2026-01-01.db', `${OLD}3T00-00-00Z.db`, expect.stringMatching(STAMP)]);
    expect(readdirSync(copies).filter((name) => name.startsWith('settings'))).toHaveLength(2);
  });
});

describe('off the machine', () => {
  const SERVER = 'sftp://keeper@copies.example:2222/srv/gpurent';
  const at = () => join(folder, 'remote/srv/gpurent');
  beforeEach(() => mkdirSync(join(folder, 'remote/srv')));

  it('copies are whole and private, half of one is deleted, and the oldest are pushed out', () => {
    set('GPURENT_COPIES_KEEP=1', `GPURENT_COPIES_TO=${folder}/mounted, ${SERVER}`);
    for (const place of [at(), join(folder, 'mounted')]) {
      mkdirSync(place, { recursive: true });
      chmodSync(place, 0o755);
      for (const name of [`${OLD}1T00-00-00Z.db`, `${OLD}2T00-00-00Z.db.part`, 'other.db'])
        writeFileSync(join(place, name), '');
    }
    expect(run()).toEqual({ status: 0, said: expect.stringMatching(ONLY_MADE) as string });
    for (const place of [at(), join(folder, 'mounted')]) {
      const [made = '', other] = databases(place);
      expect([made, other]).toEqual([expect.stringMatching(STAMP), 'other.db']);
      expect(readdirSync(place)).toHaveLength(3);
      expect([place, join(place, made)].map(modeOf)).toEqual(['700', '600']);
      expect(readFileSync(join(place, made), 'utf8')).toBe('a database\n');
    }
    expect(readFileSync(join(folder, 'asked'), 'utf8')).toMatch(
      /-P 2222 -o BatchMode=yes .*-- keeper@copies\.example $/,
    );
    expect(ages()).toEqual(
      [copies, `${folder}/mounted`, SERVER].map((place) => [place, expect.closeTo(0, 2) as number]),
    );
  });

  it('one that cannot be reached keeps none of the others from its copy, and its age grows', () => {
    set(`GPURENT_COPIES_TO=${SERVER},${folder}/none,${folder}/etc,${folder}/mounted`);
    const twoDaysAgo = Math.floor(Date.now() / 1_000) - 2 * 86_400;
    writeFileSync(`${database}.copies`, `${twoDaysAgo}\t${SERVER}\n${twoDaysAgo}\t/no/more\n`);
    writeFileSync(join(folder, 'away'), '');
    const { status, said } = run();
    expect(status).toBe(1);
    expect(said).toContain(`no route to host\ngpurent-copies: no copy was made in ${SERVER}\n`);
    expect(said).toContain(`there is no folder ${folder}/none: mount its disk, or create it`);
    expect(said).toContain(`${folder}/etc is on the same disk as ${copies}`);
    expect(databases(join(folder, 'mounted'))).toHaveLength(1);
    expect(ages()).toEqual([
      [copies, expect.closeTo(0, 2)],
      [SERVER, expect.closeTo(2, 2)],
      [`${folder}/none`, Infinity],
      [`${folder}/etc`, Infinity],
      [`${folder}/mounted`, expect.closeTo(0, 2)],
    ]);
  });
});

it.each([
  [['GPURENT_COPIES_KEPT=1', 'FOLDER=/x'], /copies\.conf: GPURENT_COPIES_KEPT, FOLDER\n/],
  [['GPURENT_COPIES_KEEP=0'], /GPURENT_COPIES_KEEP is "0"; give a whole number/],
  [['GPURENT_COPIES_FOLDER=copies'], /GPURENT_COPIES_FOLDER is "copies"; give the path/],
  [['GPURENT_COPIES_TO=sftp://a:secret@b/c'], /names "sftp:\/\/a:secret@b\/c"; give the path of a mounted folder, or/],
  [['GPURENT_COPIES_TO=sftp://-oProxyCommand=x/c'], /give the path of a mounted folder/],
  [[`GPURENT_COPIES_TO=${'/a,'.repeat(8)}`], /names 8 places; give at most 7/],
])('settings %j are refused by their name, before anything is written', (lines, saying) => {
  set(...lines);
  expect(run()).toEqual({ status: 1, said: expect.stringMatching(saying) as string });
  expect(existsSync(copies)).toBe(false);
});

it.each(['1\n', 'x'.repeat(20_000), '1\ta b\n'])(
  'a file of ages that is damaged shows as a place without a copy',
  (text) => {
    writeFileSync(`${database}.copies`, text);
    expect(ages()).toEqual([[`${database}.copies`, Infinity]]);
    rmSync(`${database}.copies`);
    expect(ages()).toEqual([]);
  },
);
