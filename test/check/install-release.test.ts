import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const LIBRARY = fileURLToPath(new URL('../../scripts/lib/install.sh', import.meta.url));

describe('a release that is installed', () => {
  let folder: string;
  let release: string;
  let installed: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'gpurent-install-'));
    release = join(folder, 'release');
    installed = join(folder, 'opt/1.2.3');
    for (const name of ['docs', 'dist']) mkdirSync(join(release, name), { recursive: true });
    writeFileSync(join(release, 'dist/build.json'), '{"version": "1.2.3"}');
    writeFileSync(join(release, 'docs/guide.md'), 'as released');
    install();
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const guide = () => readFileSync(join(installed, 'docs/guide.md'), 'utf8');
  function install(): void {
    const script = `source "$1"; release=$2 prefix=$3 node=$4; chown() { :; }; install_release agent`;
    execFileSync('bash', ['-ec', script, 'install', LIBRARY, release, join(folder, 'opt'), process.execPath]);
  }

  it('stays as it is where the same is installed again', () => {
    const { ino } = statSync(installed);
    install();
    expect(statSync(installed).ino).toBe(ino);
    expect(readFileSync(join(folder, 'opt/agent/docs/guide.md'), 'utf8')).toBe('as released');
  });

  it('has its modes again where the same is installed again', () => {
    chmodSync(join(installed, 'docs/guide.md'), 0o602);
    install();
    expect(statSync(join(installed, 'docs/guide.md')).mode & 0o777).toBe(0o644);
  });

  it('is replaced where any file is another, or one more or less', () => {
    for (const damage of [
      () => writeFileSync(join(installed, 'docs/guide.md'), 'otherwise'),
      () => writeFileSync(join(installed, 'docs/other.md'), 'added'),
      () => rmSync(join(installed, 'docs/guide.md')),
    ]) {
      damage();
      install();
      expect(guide()).toBe('as released');
      expect(() => statSync(join(installed, 'docs/other.md'))).toThrow('ENOENT');
    }
  });
});

describe('a machine that has the public key of releases', () => {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  let folder: string;
  const at = (name: string) => join(folder, name);
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'gpurent-signed-'));
    cpSync(join(root, 'test/fixtures/signed'), folder, { recursive: true });
    execFileSync('tar', ['-xmzf', 'gpurent-1.2.3.tar.gz'], { cwd: folder });
    mkdirSync(at('opt/agent/dist'), { recursive: true });
    symlinkSync(join(root, 'dist/bundle'), at('opt/agent/dist/bundle'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  function check(): { status: number | null; stderr: string } {
    const script = 'source "$1"; release=$2/gpurent-1.2.3 config_dir=$2 prefix=$2/opt node=$3; check_signature agent';
    return spawnSync('bash', ['-euc', script, 'install', LIBRARY, folder, process.execPath], { encoding: 'utf8' });
  }

  it('takes a release that is signed, and any where there is no key', () => {
    expect(check()).toMatchObject({ status: 0 });
    rmSync(at('SHA256SUMS.minisig'));
    expect(check()).toMatchObject({ status: 1 });
    rmSync(at('release.pub'));
    expect(check()).toMatchObject({ status: 0, stderr: '' });
  });

  it('checks with the new release if none is installed, or one that cannot', () => {
    mkdirSync(at('gpurent-1.2.3/dist/bundle'), { recursive: true });
    // Its own word counts here: the owner had to check it before.
    writeFileSync(at('gpurent-1.2.3/dist/bundle/agent.js'), `console.error('the new one checks'); process.exit(1)`);
    rmSync(at('opt/agent/dist/bundle'));
    expect(check().stderr).toContain('the new one checks');
    // As a release before 0.3.0 answers.
    mkdirSync(at('opt/agent/dist/bundle'));
    writeFileSync(at('opt/agent/dist/bundle/agent.js'), `console.log('Usage: gpurent-agent [command]')`);
    expect(check().stderr).toContain('the new one checks');
  });

  it.each<[string, string, () => void]>([
    ['another tarball', 'is not the file that was signed', () => writeFileSync(at('gpurent-1.2.3.tar.gz'), 'x')],
    ['no tarball', 'asks for a signed release', () => rmSync(at('gpurent-1.2.3.tar.gz'))],
    [
      'any if the key is a link to nothing',
      'release.pub cannot be read',
      () => {
        rmSync(at('release.pub'));
        symlinkSync(at('missing'), at('release.pub'));
      },
    ],
    ['another file', 'is not what its tarball has', () => writeFileSync(at('gpurent-1.2.3/guide.md'), 'As released')],
    ['a file less', 'is not what its tarball has', () => rmSync(at('gpurent-1.2.3/guide.md'))],
  ])('refuses %s', (_, reason, damage) => {
    damage();
    const { status, stderr } = check();
    expect(status).toBe(1);
    expect(stderr).toContain(reason);
    expect(stderr).toContain('nothing was changed: ');
  });
});

describe('the settings of a machine', () => {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'gpurent-install-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** As an installer of this release asks it. */
  function check(main: string, variable: string, file: string): { status: number | null; stderr: string } {
    const script = 'source "$1"; release=$2 config_dir=$3 node=$4; shift 4; check_settings "$@"';
    const args = ['-ec', script, 'install', LIBRARY, root, folder, process.execPath, main, variable, file];
    // A person's shell has these for the command line gpurent.
    return spawnSync('bash', args, { encoding: 'utf8', env: { ...process.env, GPURENT_OF_SHELL: 'x' } });
  }

  it.each([
    ['dist/bundle/control-plane.js', 'GPURENT_CONFIG', 'control-plane.conf', 'GPURENT'],
    ['dist/agent/main.js', 'GPURENT_AGENT_CONFIG', 'agent.conf', 'GPURENT_AGENT'],
  ])('that %s does not know are named, all at once, and nothing is made', (main, variable, file, prefix) => {
    expect(check(main, variable, file)).toMatchObject({ status: 0 });
    const settings = [`${prefix}_LOG_LEVEL=debug`];
    if (prefix === 'GPURENT') settings.push(`GPURENT_DATABASE=${folder}/gpurent.db`);
    writeFileSync(join(folder, file), settings.join('\n'));
    expect(check(main, variable, file)).toMatchObject({ status: 0, stderr: '' });
    writeFileSync(join(folder, file), [...settings, `${prefix}_NEW=1`, `${prefix}_NEWER=2`].join('\n'));
    const { status, stderr } = check(main, variable, file);
    expect(status).toBe(1);
    expect(stderr).toContain(`${prefix}_NEW, ${prefix}_NEWER are not settings of`);
    expect(stderr).toContain(`nothing was changed: correct ${folder}/${file}`);
    expect(readdirSync(folder)).toEqual([file]);
  });

  it.each(['control-plane', 'agent'])('are checked before the installer of the %s changes anything', (program) => {
    const script = readFileSync(join(root, 'scripts', `install-${program}`), 'utf8');
    const checks = script.indexOf('\ncheck_settings ');
    expect(checks).toBeGreaterThan(0);
    for (const change of [
      '\ninstall_release',
      '\ninstall_unit',
      '\nrestart_unit',
      '  useradd',
      '  apt-get install',
      '\n  systemctl stop',
    ])
      if (script.includes(change)) expect(checks).toBeLessThan(script.indexOf(change));
  });
});
