import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseConfig } from '../../agent/config.js';
import { hostChecks } from '../../agent/doctor/host-checks.js';
import { parseFailure, roomFault, upgradeRefusal } from '../../agent/domain/upgrade.js';
import { missingForUpgrades, upgradeObstacles } from '../../agent/host/upgrade-permission.js';
import { MIB } from '../../shared/bytes.js';
import { isNewer, isVersion, requireNewer, tarballOf, versionOfTarball } from '../../shared/release/newer.js';

describe('a version', () => {
  it.each(['0.3.0', '0.3.0-dev', '0.3.0-dev.12+625c9e7c', '0.3.0+unknown', '10.20.30'])('%s is one', (text) => {
    expect(isVersion(text)).toBe(true);
    expect(versionOfTarball(tarballOf(text))).toBe(text);
  });

  it.each([
    '',
    '0.3',
    'v0.3.0',
    '=0.3.0',
    ' 0.3.0',
    '0.3.0\n',
    '0.3.0/..',
    '../0.3.0',
    '00.3.0',
    '0.3.0-',
    `1.0.0-${'x'.repeat(60)}`,
  ])('%j is none', (text) => {
    expect(isVersion(text)).toBe(false);
    expect(versionOfTarball(tarballOf(text))).toBeUndefined();
    expect([isNewer(text, '0.0.1'), isNewer('9.9.9', text)]).toEqual([false, false]);
  });

  it.each([
    ['0.3.1', '0.3.0', true],
    ['0.3.0', '0.3.0-dev', true],
    ['0.3.0-dev.12', '0.3.0-dev.9', true],
    ['0.10.0', '0.9.0', true],
    ['0.3.0', '0.3.0', false],
    ['0.3.0+b', '0.3.0+a', false],
    ['0.3.0-rc.1', '0.3.0', false],
    ['0.2.9', '0.3.0', false],
  ])('%s is higher than %s: %s', (version, than, is) => {
    expect(isNewer(version, than)).toBe(is);
    expect(upgradeRefusal(version, than, []) === undefined).toBe(is);
  });
});

it('verify --newer-than takes only the tarball of a higher version', () => {
  const check =
    (name: string, than = '0.3.0') =>
    () =>
      requireNewer(`/some/where/${name}`, than);
  expect(check(tarballOf('0.3.1'))).not.toThrow();
  expect(check(tarballOf('0.3.0'))).toThrow('version 0.3.0 is not higher than 0.3.0');
  expect(check('gpurent-0.3.1-linux-x64.sbom.json')).toThrow('is not the name of a release for hosts');
  expect(check('gpurent-0.3.1-linux-arm64.tar.gz')).toThrow('is not the name of a release for hosts');
  expect(check(tarballOf('0.3.1'), 'new')).toThrow('new is no version');
});

it('a disk keeps a gibibyte free', () => {
  expect(roomFault(1_124 * MIB, 100 * MIB)).toBeUndefined();
  expect(roomFault(1_124 * MIB - 1, 100 * MIB)).toBe(
    'the disk of this host has 1124 MiB free, and the upgrade needs 1124 MiB',
  );
});

it('what a file tells of a failure is bounded and plain', () => {
  const reason = `a\u001b[31m\n${'x'.repeat(600)}`;
  const failure = parseFailure(JSON.stringify({ version: '1.0.0', reason, at: 5, more: true }));
  expect(failure).toEqual({ version: '1.0.0', reason: `a [31m ${'x'.repeat(493)}`, at: 5 });
});

describe('an owner of a host', () => {
  let folder: string;
  let files: { key: string; unit: string };
  const host = (upgrades: 'off' | 'signed') => ({ upgrades, stateDir: '/srv/50% a' });
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'gpurent-permission-'));
    files = { key: join(folder, 'release.pub'), unit: join(folder, 'unit') };
    writeFileSync(files.key, '');
    writeFileSync(files.unit, '[Path]\nPathExists=/srv/50%% a/upgrade/ready\n');
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('allows upgrades by the setting, with a key and the upgrade unit', () => {
    expect(upgradeObstacles(host('signed'), files)).toEqual([]);
    expect(upgradeObstacles(host('off'), files)).toEqual(['its owner does not allow it (GPURENT_AGENT_UPGRADES)']);
    expect(parseConfig({}).upgrades).toBe('off');
    expect(parseConfig({ GPURENT_AGENT_UPGRADES: 'signed' }).upgrades).toBe('signed');
    for (const value of ['on', 'Signed', 'signed '])
      expect(() => parseConfig({ GPURENT_AGENT_UPGRADES: value })).toThrow('GPURENT_AGENT_UPGRADES is');
  });

  it('hears what is missing', () => {
    const gone = join(folder, 'gone');
    expect(missingForUpgrades(host('signed'), { ...files, key: gone })).toEqual([
      `the public key of releases cannot be read: there is no file ${gone}`,
    ]);
    mkdirSync(join(folder, 'folder'));
    expect(missingForUpgrades(host('signed'), { ...files, key: join(folder, 'folder') })).toHaveLength(1);
    const noUnit = 'no upgrade unit watches /srv/50% a: run the scripts/install-agent of this release';
    expect(missingForUpgrades(host('signed'), { ...files, unit: gone })).toEqual([noUnit]);
    // One that watches the state of another agent.
    expect(missingForUpgrades({ stateDir: '/srv/other' }, files)).toHaveLength(1);
  });

  it('hears it from the doctor, too', async () => {
    const look = async (value: string) => {
      const config = parseConfig({ GPURENT_AGENT_UPGRADES: value, GPURENT_AGENT_STATE_DIR: folder });
      return hostChecks(config)
        .find(({ name }) => name === 'upgrades')
        ?.look();
    };
    expect(await look('off')).toEqual([{ verdict: 'good', what: 'the agent does not upgrade itself' }]);
    const found = (await look('signed')) ?? [];
    expect(found.at(-1)).toMatchObject({
      verdict: 'doubtful',
      what: expect.stringContaining('no upgrade unit watches') as string,
    });
  });
});
