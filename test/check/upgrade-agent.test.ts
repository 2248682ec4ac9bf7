import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { tarballOf } from '../../shared/release/newer.js';
import { ReleaseKey, signedRelease } from '../harness/signed-release.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const KEY = new ReleaseKey();
const OLD = '1.2.3';
const NEW = '1.3.0';
/** Says that it was run, and fails or hangs where the test wants that; otherwise does as the real one with releases. */
const INSTALLER = `#!/usr/bin/env bash
set -eu
release=$(cd "$(dirname "$0")/.." && pwd -P)
version=$(sed 's/.*"version": "\\(.*\\)".*/\\1/' "$release/dist/build.json")
echo "$version" >>"$FOLDER/installed"
if [ "$release" != "$FOLDER/opt/$version" ]; then cp -r "$release" "$FOLDER/opt/$version"; fi
ln -sfn "$version" "$FOLDER/opt/agent"
if [ -e "$FOLDER/hangs-$version" ]; then sleep 600; fi
if [ -e "$FOLDER/fails-$version" ]; then echo 'it does not' >&2; echo 'start' >&2; exit 1; fi
`;
/** Answers as the agent of the release that is installed. */
const STATUS = `#!/usr/bin/env bash
version=$(readlink "$FOLDER/opt/agent")
if [ -e "$FOLDER/silent-$version" ]; then exit 1; fi
echo "{\\"version\\": \\"$version\\"}"
`;

let folder: string;
const at = (...path: string[]) => join(folder, ...path);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-upgrade-'));
  for (const name of ['bin', 'etc', 'opt', 'state/upgrade', 'root']) mkdirSync(at(name), { recursive: true });
  writeFileSync(at('bin/gpurent-agent'), STATUS, { mode: 0o755 });
  writeFileSync(at('etc/release.pub'), KEY.text);
  writeFileSync(at('etc/agent.conf'), `GPURENT_AGENT_STATE_DIR=${at('state')}\nGPURENT_AGENT_UPGRADES=signed\n`);
  release(at('opt', OLD), OLD);
  for (const name of ['bundle', 'shared']) symlinkSync(join(ROOT, 'dist', name), at('opt', OLD, 'dist', name));
  symlinkSync(join(ROOT, 'node_modules'), at('opt', OLD, 'node_modules'));
  symlinkSync(OLD, at('opt/agent'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Makes an unpacked release. */
function release(path: string, version: string): void {
  for (const name of ['dist', 'scripts', 'node/bin']) mkdirSync(join(path, name), { recursive: true });
  writeFileSync(join(path, 'dist/build.json'), `{"version": "${version}"}`);
  writeFileSync(join(path, 'scripts/install-agent'), INSTALLER, { mode: 0o755 });
  symlinkSync(process.execPath, join(path, 'node/bin/node'));
}

/** Puts a release where the agent puts it. `inside`: the version of what is in the tarball. */
function offer(version = NEW, { key = KEY, inside = version } = {}): void {
  const name = tarballOf(version);
  const unpacked = name.replace('.tar.gz', '');
  rmSync(at('made'), { recursive: true, force: true });
  release(at('made', unpacked), inside);
  const tarball = execFileSync('tar', ['-C', at('made'), '-czf', '-', unpacked]);
  const files = signedRelease(key, name, tarball);
  mkdirSync(at('state/upgrade/ready'), { recursive: true });
  for (const file of Object.values(files)) writeFileSync(ready(file.name), file.content);
}
const ready = (name: string) => at('state/upgrade/ready', name);

/** What the unit runs, of the release that is installed, in other folders. */
const script = (before: string) => `
  set -euo pipefail
  source ${ROOT}scripts/lib/install.sh
  source ${ROOT}scripts/lib/upgrade.sh
  release=$FOLDER/opt/${OLD} prefix=$FOLDER/opt config_dir=$FOLDER/etc units=$FOLDER/etc
  work=$FOLDER/root/upgrade lock=$FOLDER/root/lock tries=2
  sleep() { if [ "$1" = 2 ]; then command sleep 0.01; else command sleep "$1"; fi; }
  has_process() { [ -e "$1/is-running" ]; }
  ${before}
  upgrade_agent`;
const options = () => ({
  encoding: 'utf8' as const,
  env: { PATH: `${at('bin')}:${process.env['PATH']}`, FOLDER: folder },
});

function upgrade(before = ''): { status: number | null; stderr: string } {
  return spawnSync('bash', ['-c', script(before)], { ...options(), stdio: ['ignore', 'pipe', 'pipe'] });
}

const installs = () => (existsSync(at('installed')) ? readFileSync(at('installed'), 'utf8').trim().split('\n') : []);
const failure = () =>
  JSON.parse(readFileSync(at('state/upgrade/failed.json'), 'utf8')) as { version: string; reason: string; at: number };
const releases = () => readdirSync(at('opt')).sort();

it('installs a release that is signed and newer, and keeps the one before and those that are used', () => {
  for (const [name, file] of [
    ['1.0.0', ''],
    ['1.1.0', 'is-running'],
    ['1.2.0', ''],
  ] as const) {
    mkdirSync(at('opt', name));
    if (file) writeFileSync(at('opt', name, file), '');
  }
  symlinkSync('1.2.0', at('opt/control-plane'));
  offer();
  const { status, stderr } = upgrade();
  expect(stderr).toContain(`${tarballOf(NEW)} is as signed`);
  expect(stderr).toContain(`upgraded from ${OLD} to ${NEW}`);
  expect(status).toBe(0);
  expect(installs()).toEqual([NEW]);
  expect(releases()).toEqual(['1.1.0', '1.2.0', OLD, NEW, 'agent', 'control-plane']);
  expect(readlinkSync(at('opt/agent'))).toBe(NEW);
  // Nothing is left of it.
  expect([readdirSync(at('state/upgrade')), readdirSync(at('root'))]).toEqual([[], ['lock']]);
});

describe('installs nothing, says why, and leaves nothing to begin with again:', () => {
  const settings = (line: string) => () =>
    writeFileSync(at('etc/agent.conf'), `GPURENT_AGENT_STATE_DIR=${at('state')}\n${line}\n`);
  const swap = (name: string, content: string) => () => writeFileSync(ready(name), content);
  const edit = (name: string, change: (path: string) => void) => () => change(ready(name));

  it.each<[string, string, () => void]>([
    ['the owner has said nothing', 'does not have GPURENT_AGENT_UPGRADES=signed', settings('')],
    ['the owner has said off', 'does not have GPURENT_AGENT_UPGRADES=signed', settings('GPURENT_AGENT_UPGRADES=off')],
    [
      'the last line counts',
      'does not have GPURENT_AGENT_UPGRADES=signed',
      settings('GPURENT_AGENT_UPGRADES=signed\n export GPURENT_AGENT_UPGRADES = "off" # for now'),
    ],
    ['only a comment allows it', 'does not have', settings('#GPURENT_AGENT_UPGRADES=signed')],
    ['the key is gone', 'put the public key of the releases there', () => rmSync(at('etc/release.pub'))],
    ['another key has signed it', 'the signature is by the key', () => offer(NEW, { key: new ReleaseKey() })],
    ['the tarball is another one', 'is not the file that was signed', swap(tarballOf(NEW), 'forged')],
    ['the checksums are others', 'the signature does not fit', swap('SHA256SUMS', 'forged')],
    ['a file is missing', 'SHA256SUMS.minisig cannot be copied', edit('SHA256SUMS.minisig', (path) => rmSync(path))],
    [
      'a file is a link',
      'SHA256SUMS cannot be copied',
      edit('SHA256SUMS', (path) => {
        rmSync(path);
        symlinkSync('/dev/zero', path);
      }),
    ],
    [
      'a file is a pipe',
      'SHA256SUMS cannot be copied',
      edit('SHA256SUMS', (path) => {
        rmSync(path);
        execFileSync('mkfifo', [path]);
      }),
    ],
    ['its name says another version', 'has another release than its name says', () => offer(NEW, { inside: '1.4.0' })],
  ])('%s', (_, reason, damage) => {
    offer();
    damage();
    const before = Date.now();
    const { status, stderr } = upgrade();
    expect(status).toBe(1);
    expect(stderr).toContain(reason);
    expect(failure()).toMatchObject({ version: NEW, reason: expect.stringContaining(reason) as string });
    expect(failure().at).toBeGreaterThanOrEqual(before);
    expect(statSync(at('state/upgrade/failed.json')).mode & 0o077).toBe(0);
    expect([installs(), releases()]).toEqual([[], [OLD, 'agent']]);
    expect([readdirSync(at('state/upgrade')), readdirSync(at('root'))]).toEqual([['failed.json'], ['lock']]);
  });

  it.each(['1.2.2', '1.2.3-rc.1', '0.9.9', '1.2.3+other'])('%s is no higher version', (version) => {
    offer(version);
    const { status, stderr } = upgrade();
    expect(status).toBe(1);
    expect(stderr).toContain(`version ${version} is not higher than ${OLD}`);
    expect([installs(), existsSync(at('state/upgrade/ready'))]).toEqual([[], false]);
  });

  it('a release that is installed already', () => {
    offer(OLD);
    expect(upgrade()).toMatchObject({ status: 0, stderr: `${OLD} is installed already\n` });
    expect([installs(), readdirSync(at('state/upgrade'))]).toEqual([[], []]);
  });

  it.each<[string, () => void]>([
    ['no release', () => rmSync(ready(tarballOf(NEW)))],
    ['two releases', () => offer('1.4.0')],
    [
      'a name that is none',
      () => {
        cpSync(ready(tarballOf(NEW)), ready('gpurent-$(reboot)-linux-x64.tar.gz'));
        rmSync(ready(tarballOf(NEW)));
      },
    ],
  ])('%s', (_, damage) => {
    offer();
    damage();
    expect(upgrade().stderr).toContain('has no release for hosts, or several');
    expect([installs(), readdirSync(at('state/upgrade'))]).toEqual([[], []]);
  });

  it.each<[string, () => void]>([
    ['nothing', () => rmSync(at('state/upgrade/ready'), { recursive: true, force: true })],
    [
      'a link',
      () => {
        cpSync(at('state/upgrade/ready'), at('elsewhere'), { recursive: true });
        rmSync(at('state/upgrade/ready'), { recursive: true });
        symlinkSync(at('elsewhere'), at('state/upgrade/ready'));
      },
    ],
  ])('where there is %s to install', (_, damage) => {
    offer();
    damage();
    expect(upgrade()).toMatchObject({ status: 0, stderr: expect.stringContaining('no release waits in') as string });
    expect([installs(), readdirSync(at('state/upgrade'))]).toEqual([[], []]);
  });

  it('a disk that has no room to unpack it', () => {
    offer();
    expect(upgrade('df() { printf "Avail\\n100\\n"; }').stderr).toContain('has too little room');
    expect(failure().reason).toBe('the disk of this host has too little room');
    expect(installs()).toEqual([]);
  });

  it('a release that is not the one that is installed', () => {
    offer();
    expect(upgrade('release=$FOLDER/elsewhere; find_node() { :; }')).toMatchObject({
      status: 1,
      stderr: `run the script of the installed release: ${at('opt/agent/scripts/upgrade-agent')}\n`,
    });
    expect(installs()).toEqual([]);
  });

  it('while another upgrade runs', () => {
    offer();
    const held = 'exec 8>"$lock"; flock 8';
    expect(upgrade(held)).toMatchObject({ status: 1, stderr: 'another upgrade is under way\n' });
    expect(existsSync(ready(tarballOf(NEW)))).toBe(true);
  });
});

it('a change of the files after they were copied changes nothing', () => {
  offer();
  const later = `check_allowed=$(declare -f check_release); eval "real_$check_allowed"
    check_release() { mkdir -p $FOLDER/state/upgrade/ready; echo forged >$FOLDER/state/upgrade/ready/${tarballOf(NEW)}; real_check_release; }`;
  expect(upgrade(later)).toMatchObject({ status: 0 });
  expect(installs()).toEqual([NEW]);
});

describe('a release that does not come up', () => {
  it.each([
    ['fails', 'scripts/install-agent has failed: it does not start'],
    ['silent', 'its agent was installed, but does not answer'],
  ])('(%s) is replaced by the one before', (how, reason) => {
    writeFileSync(at(`${how}-${NEW}`), '');
    mkdirSync(at('opt/1.0.0'));
    offer();
    const { status, stderr } = upgrade();
    expect(status).toBe(1);
    expect(stderr).toContain(`${OLD} runs again`);
    expect(installs()).toEqual([NEW, OLD]);
    expect(readlinkSync(at('opt/agent'))).toBe(OLD);
    // Only the one that has failed is removed.
    expect(releases()).toEqual(['1.0.0', OLD, 'agent']);
    expect(failure()).toMatchObject({ version: NEW });
    expect(failure().reason.trim()).toBe(reason);
  });

  it('is said to have failed before the one before starts, which reports it', () => {
    writeFileSync(at(`fails-${NEW}`), '');
    offer();
    const seen = `roll_back() { cp $state/upgrade/failed.json $FOLDER/seen; }`;
    upgrade(seen);
    expect(readFileSync(at('seen'), 'utf8')).toContain('has failed: it does not start');
  });

  it('says so where the one before does not come back either', () => {
    for (const version of [OLD, NEW]) writeFileSync(at(`fails-${version}`), '');
    offer();
    expect(upgrade().status).toBe(1);
    expect(failure().reason).toContain(
      `${OLD} could not be installed again: see "journalctl -u gpurent-agent-upgrade"`,
    );
    expect(existsSync(at('opt', OLD))).toBe(true);
  });

  it('is replaced, too, if the upgrade is ended while it is installed', async () => {
    writeFileSync(at(`hangs-${NEW}`), '');
    offer();
    const child = spawn('bash', ['-c', script('')], { ...options(), detached: true, stdio: 'ignore' });
    const ended = once(child, 'exit');
    await eventually('the installer', () => installs().length === 1);
    // As systemd does: to all processes of the unit.
    process.kill(-(child.pid ?? 0), 'SIGTERM');
    expect(await ended).toEqual([143, null]);
    expect(installs()).toEqual([NEW, OLD]);
    expect(failure().reason).toBe('the upgrade was interrupted');
  });
});

it('the script is in a release, and its units are installed and removed', () => {
  const text = (name: string) => readFileSync(join(ROOT, 'scripts', name), 'utf8');
  for (const file of ['scripts/upgrade-agent', 'scripts/lib/upgrade.sh'])
    expect(text('release')).toContain(` ${file} `);
  expect(text('install-agent')).toContain('"$upgrade.path" "$upgrade.service" "$proxy.socket"');
  const run = `source ${ROOT}scripts/lib/install.sh; units=$FOLDER service_node=/node
    systemctl() { echo "$@" >>$FOLDER/asked; }; state='/srv/50% a&b|c'
    for unit in path service path; do install_unit gpurent-agent-upgrade.$unit; done`;
  execFileSync('bash', ['-euc', run], options());
  chmodSync(at('gpurent-agent-upgrade.path'), 0o644);
  const unit = readFileSync(at('gpurent-agent-upgrade.path'), 'utf8');
  expect(unit).toContain('\nPathExists=/srv/50%% a&b|c/upgrade/ready\n');
  // Once for each: nothing has changed afterwards.
  expect(readFileSync(at('asked'), 'utf8').match(/daemon-reload/g)).toHaveLength(2);
});
