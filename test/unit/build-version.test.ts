import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import semver from 'semver';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { buildVersion, lastRelease, npmVersion, versionFault } from '../../scripts/releases/build-version.js';
import { Checkout } from '../../scripts/releases/checkout.js';

const at = (since: number | null, isModified = false) => ({ id: '625c9e7c', since, isModified });

describe('a build', () => {
  it.each([
    ['0.3.0-dev', at(12), '0.3.0-dev.12+625c9e7c'],
    ['0.3.0-dev', at(12, true), '0.3.0-dev.12+625c9e7c.modified'],
    ['0.3.0-dev', at(null), '0.3.0-dev+625c9e7c'],
    ['0.3.0-dev', null, '0.3.0-dev+unknown'],
    ['0.3.0', null, '0.3.0'],
    ['0.3.0', at(0), '0.3.0'],
    ['0.3.0', at(0, true), '0.3.0+625c9e7c.modified'],
    ['0.3.0', at(1), '0.3.0+625c9e7c'],
  ])('of %s at %o is %s', (declared, commit, version) => {
    expect(buildVersion(declared, commit)).toBe(version);
    expect(semver.valid(version)).not.toBeNull();
  });

  it('is later than the builds before it, and earlier than the release', () => {
    const versions = ['0.2.0', '0.3.0-dev', '0.3.0-dev.9+625c9e7c', '0.3.0-dev.10+0badc0de', '0.3.0'];
    expect([...versions].reverse().sort(semver.compare)).toEqual(versions);
  });

  it('is an npm package without the commit', () => {
    expect(npmVersion('0.3.0-dev.12+625c9e7c.modified')).toBe('0.3.0-dev.12');
  });
});

describe('a checkout', () => {
  const dated = { version: '0.3.0', date: '2026-12-05' };
  it.each([
    ['0.3.0', dated, at(0)],
    ['0.3.0', dated, null],
    ['0.4.0-dev', dated, at(1)],
    ['0.1.0-dev', null, at(1)],
  ])('may call itself %s after %o, at %o', (declared, release, commit) =>
    expect(versionFault(declared, release, commit)).toBeUndefined(),
  );

  it.each([
    ['0.3.0', dated, at(1), 'was released 1 commits ago; raise it with: npm run set-version -- 0.4.0-dev'],
    ['0.3.0', { version: '0.3.0', date: null }, at(0), 'no section "## 0.3.0 (date)"'],
    ['0.3.0', { version: '0.2.0', date: null }, at(9), 'no section "## 0.3.0 (date)"'],
    ['0.3.0-dev', dated, at(1), '0.3.0 is released'],
    ['0.2.0-dev', dated, at(1), '0.3.0 is released'],
    ['next', dated, at(1), 'is not one of SemVer'],
  ])('must not call itself %s after %o, at %o', (declared, release, commit, fault) =>
    expect(versionFault(declared, release, commit)).toContain(fault),
  );

  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'gpurent-version-'));
    writeFileSync(join(folder, 'CHANGELOG.md'), '# Changelog\n');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', '-c', 'core.hooksPath=/dev/null', ...args], {
      cwd: folder,
    });
  const commit = () => {
    git('add', '-A');
    git('commit', '-q', '--allow-empty', '-m', 'a');
  };

  it('counts from the commit that put the release into the changelog', () => {
    const checkout = new Checkout(folder);
    expect(checkout.commit()).toBeNull();
    git('init', '-q');
    commit();
    expect(checkout.commit()).toMatchObject({ since: 1, isModified: false });
    appendFileSync(join(folder, 'CHANGELOG.md'), '\n## 0.3.0 (2026-12-05)\n');
    expect(checkout.release).toEqual(dated);
    expect(checkout.commit()).toMatchObject({ since: 0, isModified: true });
    commit();
    expect(checkout.commit()).toMatchObject({ since: 0, isModified: false });
    commit();
    commit();
    expect(checkout.commit()).toMatchObject({ since: 2, id: expect.stringMatching(/^[\da-f]{8}$/) as string });
    // Another repository around these files says nothing about them.
    expect(new Checkout(join(folder, '.git')).commit()).toBeNull();
  });
});

it('the newest release of a changelog is its first section', () => {
  expect(lastRelease('# C\n\n## 0.2.0\n\n## 0.1.0\n')).toEqual({ version: '0.2.0', date: null });
  expect(lastRelease('# C\n\n## Unreleased\n')).toBeNull();
});
