import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
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
    mkdirSync(join(release, 'docs'), { recursive: true });
    writeFileSync(join(release, 'package.json'), '{"version": "1.2.3"}');
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
