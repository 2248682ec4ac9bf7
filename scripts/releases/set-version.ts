import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import semver from 'semver';
import { MANIFESTS, Checkout, ROOT } from './checkout.js';

/** Guides name the release that they describe, without `-dev`. */
const GUIDES = [
  'README.md',
  'docs/operator.md',
  'docs/host-owner.md',
  'docs/cli.md',
  'docs/renter.md',
  'docs/containers.md',
  'packaging/control-plane.conf',
  'docs/dev/testing.md',
];

const [version = ''] = process.argv.slice(2);
const parsed = semver.parse(version);
if (parsed?.version !== version)
  throw new Error(`"${version}" is not a version; usage: npm run set-version -- 0.4.0-dev`);
const { declared } = new Checkout(ROOT);
const replaceIn = (file: string, replace: (text: string) => string) => {
  const path = join(ROOT, file);
  writeFileSync(path, replace(readFileSync(path, 'utf8')));
};
// A lock names it twice, before the version of any library.
for (const file of [...MANIFESTS, 'docs/openapi.json'])
  for (let left = file === 'package-lock.json' ? 2 : 1; left > 0; left -= 1)
    replaceIn(file, (text) => text.replace(`"version": "${declared}"`, `"version": "${version}"`));
const before = semver.coerce(declared)?.version.replaceAll('.', '\\.');
const named = new RegExp(`\\b(gpurent-(?:client-|control-plane-)?|GPURENT_VERSION=|control-plane:)${before}\\b`, 'g');
const release = `${parsed.major}.${parsed.minor}.${parsed.patch}`;
for (const guide of GUIDES) replaceIn(guide, (text) => text.replace(named, (_, what: string) => `${what}${release}`));
