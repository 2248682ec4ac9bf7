import {
  appendFileSync,
  copyFileSync,
  cpSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { verifyRelease } from '../../shared/release/verify.js';

// What minisign 0.11 has signed. The secret key is gone.
const SIGNED = fileURLToPath(new URL('../fixtures/signed', import.meta.url));
const NAME = 'gpurent-1.2.3.tar.gz';
let folder: string;
const at = (name: string) => join(folder, name);
const verify = (name = NAME, key = 'release.pub') => verifyRelease(at(name), at(key));

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-signed-'));
  cpSync(SIGNED, folder, { recursive: true });
});
afterEach(() => rmSync(folder, { recursive: true }));

it('takes what minisign has signed, with its line ends or those of Windows', async () => {
  expect(await verify()).toBe(`${NAME} is as signed (gpurent 1.2.3)`);
  edit('SHA256SUMS.minisig', (text) => text.replaceAll('\n', '\r\n'));
  edit('release.pub', (text) => text.replaceAll('\n', '\r\n'));
  expect(await verify()).toBe(`${NAME} is as signed (gpurent 1.2.3)`);
});

it.each<[string, string, () => void]>([
  ['a changed file', 'is not the file that was signed', () => appendFileSync(at(NAME), '!')],
  ['a link to another file', 'is not the file that was signed', () => link(NAME, at('twice'))],
  ['a folder', `${NAME} cannot be read`, () => link(NAME, folder)],
  ['a changed checksum', 'the signature does not fit', () => appendFileSync(at('SHA256SUMS'), '\n')],
  [
    'checksums with other line ends',
    'the signature does not fit',
    () => edit('SHA256SUMS', (text) => text.replace('\n', '\r\n')),
  ],
  ['the signature of another file', 'the signature does not fit', () => sign('of-another-file.minisig')],
  [
    'a changed comment',
    'the signature does not fit',
    () => edit('SHA256SUMS.minisig', (text) => text.replace('1.2.3', '1.2.4')),
  ],
  ['a signature without its comment', 'no signed comment', () => edit('SHA256SUMS.minisig', (text) => lines(text, 2))],
  [
    'a signature that ends early',
    'is not one of minisign',
    () => edit('SHA256SUMS.minisig', (text) => text.slice(0, 80)),
  ],
  ['an empty signature', 'is not one of minisign', () => writeFileSync(at('SHA256SUMS.minisig'), '')],
  [
    'a signature with other characters',
    'is not one of minisign',
    () => edit('SHA256SUMS.minisig', (text) => text.replace('\nR', '\n!R')),
  ],
  ['a signature of the old form', 'has an old form', () => sign('old-form.minisig')],
  ['a signature without end', 'SHA256SUMS.minisig is not a file', () => link('SHA256SUMS.minisig', '/dev/zero')],
  [
    'endless checksums',
    'SHA256SUMS is too large',
    () => writeFileSync(at('SHA256SUMS'), Buffer.alloc(1024 * 1024 + 1)),
  ],
  ['an unsigned build', 'a build that has none is unsigned', () => rmSync(at('SHA256SUMS.minisig'))],
  ['no checksums', 'SHA256SUMS cannot be read', () => rmSync(at('SHA256SUMS'))],
  [
    'a file that the checksums name twice',
    `does not name ${NAME}`,
    () => {
      renameSync(at('twice'), at('SHA256SUMS'));
      sign('twice.minisig');
    },
  ],
])('refuses %s', async (_, reason, damage) => {
  damage();
  await expect(verify()).rejects.toThrow(reason);
});

it('refuses another name, another key, and no key', async () => {
  await expect(verify(NAME, 'other.pub')).rejects.toThrow(
    'the signature is by the key A2F48F74D466CBFC, and the public key is 41A09B51926B6648',
  );
  await expect(verify(NAME, 'missing')).rejects.toThrow('put the public key of the releases there');
  await expect(verify(NAME, NAME)).rejects.toThrow('the public key is not one of minisign');
  copyFileSync(at(NAME), at('gpurent-1.2.4.tar.gz'));
  await expect(verify('gpurent-1.2.4.tar.gz')).rejects.toThrow('does not name gpurent-1.2.4.tar.gz');
});

it('refuses another key with the same id', async () => {
  // Ids are chosen by whoever makes a key.
  const bytes = (name: string) => Buffer.from(readFileSync(at(name), 'utf8').split('\n')[1] ?? '', 'base64');
  const forged = Buffer.concat([bytes('release.pub').subarray(0, 10), bytes('other.pub').subarray(10)]);
  writeFileSync(at('release.pub'), `untrusted comment: x\n${forged.toString('base64')}\n`);
  await expect(verify()).rejects.toThrow('the signature does not fit');
});

const sign = (signature: string) => renameSync(at(signature), at('SHA256SUMS.minisig'));
const lines = (text: string, count: number) => text.split('\n').slice(0, count).join('\n');
function edit(name: string, change: (text: string) => string): void {
  writeFileSync(at(name), change(readFileSync(at(name), 'utf8')));
}
function link(name: string, target: string): void {
  rmSync(at(name));
  symlinkSync(target, at(name));
}
