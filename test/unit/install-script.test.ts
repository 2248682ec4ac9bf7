import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';

const LIBRARY = fileURLToPath(new URL('../../scripts/lib/install.sh', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'gpurent-install-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs functions of the installers, as both do. Returns what they print. */
function bash(script: string): string {
  const setup = `set -euo pipefail; source ${LIBRARY}; config_dir=${folder}/etc; exec 2>&1; `;
  return execFileSync('bash', ['-c', setup + script], { encoding: 'utf8' });
}

it('a long step says that it goes on, at least every five seconds, and nothing once it has ended or failed', () => {
  const quick = 'sleep() { command sleep 0.1; }; ';
  const long = bash(
    `${quick} begin_step 'copying it'; command sleep 0.5; begin_step 'waiting'; command sleep 0.5; end_step; command sleep 0.3; say done`,
  );
  expect(long).toMatch(/^(copying it, for \d+ seconds so far\n){2,}(waiting, for \d+ seconds so far\n){2,}done\n$/);
  expect(bash(`${quick} (trap end_step EXIT; begin_step 'enrolling'; exit 0); command sleep 0.5`)).not.toContain(
    'enrolling',
  );
  expect(readFileSync(LIBRARY, 'utf8')).toContain('while sleep 4 ');
});

it('only x86_64 machines with Linux 5.10 or later become hosts; others are told what they are', () => {
  const on = (arch: string, kernel: string) =>
    bash(`uname() { [ $1 = -m ] && echo ${arch} || echo ${kernel}; }; (require_host) || true; say checked`);
  expect(on('x86_64', '5.10.0-34-cloud-amd64')).toBe('checked\n');
  expect(on('x86_64', '10.0')).toBe('checked\n');
  expect(on('aarch64', '6.1.0')).toBe('this machine is aarch64, but hosts are x86_64: nothing was changed\nchecked\n');
  for (const kernel of ['5.9.16', '4.19.0-27-amd64', 'unknown'])
    expect(on('x86_64', kernel)).toContain(
      `this machine has Linux ${kernel}, but hosts have 5.10 or later: nothing was`,
    );
});

describe('a removal', () => {
  const put = (name: string) => {
    const path = join(folder, name);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, '');
    chmodSync(path, 0o640);
    return path;
  };
  const own = put('etc/privkey.pem');
  const elsewhere = put('else/smtp password');
  const database = [put('data/gpurent.db'), put('data/gpurent.db.key')];
  const conf = put('etc/control-plane.conf');
  writeFileSync(
    conf,
    [
      `GPURENT_SMTP_PASSWORD_FILE=${elsewhere}`,
      '#GPURENT_STRIPE_SECRET_KEY_FILE=/etc/gpurent/stripe.key',
      `GPURENT_TLS_KEY_FILE=${folder}/gone.pem`,
      `GPURENT_DATABASE=${String(database[0])}`,
      'GPURENT_SIGN_UP=open',
      '',
    ].join('\n'),
  );

  it('names the keys, passwords and data that stay, and nothing that is gone', () => {
    const lines = bash(`mapfile -t named < <(named_by control-plane.conf); say_kept "\${named[@]}" ${own}`).split('\n');
    expect(lines.slice(1, -1).map((line) => line.trim())).toEqual([...database, elsewhere, own].sort());
    expect(bash(`say_kept ${folder}/gone.pem; mapfile -t named < <(named_by none.conf); say_kept "\${named[@]}"`)).toBe(
      '',
    );
  });

  it('names the places of copies that stay: folders that are there, and other machines', () => {
    const places = (settings: string) => {
      writeFileSync(join(folder, 'etc/copies.conf'), settings);
      return bash('mapfile -t places < <(places_of_copies copies.conf); say_copies "${places[@]}"')
        .split('\n')
        .slice(1);
    };
    const server = 'sftp://keeper@copies.example/srv/gpurent';
    const here = put('copies/gpurent.db').replace(/\/[^/]*$/, '');
    const settings = `GPURENT_COPIES_FOLDER = "${here}"\nGPURENT_COPIES_TO=${folder}/gone, ${server},${folder}/else\n`;
    expect(places(settings)).toEqual([`  ${here}`, `  ${server}`, `  ${folder}/else`, '']);
    expect(places(`GPURENT_COPIES_FOLDER=${folder}/gone\n`)).toEqual([]);
  });

  it.runIf(process.getuid?.() === 0)('leaves nothing to the group that it frees', () => {
    const group = Number(execFileSync('id', ['-g', 'nobody'], { encoding: 'utf8' }));
    for (const path of [own, elsewhere]) chownSync(path, 0, group);
    const other = put('etc/of-another.pem');
    bash(`take_from nobody ${folder}/etc '${elsewhere}' ${folder}/gone.pem`);
    const modeOf = (path: string) => [statSync(path).gid, statSync(path).mode & 0o777];
    expect([own, elsewhere].map(modeOf)).toEqual([
      [0, 0o600],
      [0, 0o600],
    ]);
    expect(modeOf(other)[1]).toBe(0o640);
  });
});
