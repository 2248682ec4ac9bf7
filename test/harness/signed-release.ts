import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto';

/** A key by which releases are signed, as minisign makes it. */
export class ReleaseKey {
  private readonly id = randomBytes(8);
  private readonly secret: KeyObject;
  /** The text of its public half. */
  readonly text: string;

  constructor() {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    this.secret = privateKey;
    const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
    this.text = `untrusted comment: a test\n${Buffer.concat([Buffer.from('Ed'), this.id, raw]).toString('base64')}\n`;
  }

  /** Returns the signature of a text, as `minisign -S` writes it. */
  sign(content: string, comment = 'gpurent'): string {
    const signature = sign(null, createHash('blake2b512').update(content).digest(), this.secret);
    const own = Buffer.concat([Buffer.from('ED'), this.id, signature]).toString('base64');
    const overComment = sign(null, Buffer.concat([signature, Buffer.from(comment)]), this.secret).toString('base64');
    return `untrusted comment: a test\n${own}\ntrusted comment: ${comment}\n${overComment}\n`;
  }
}

/** The files of a release, by their names. */
export type ReleaseFiles = Record<'tarball' | 'sums' | 'signature', { name: string; content: Buffer }>;

/** Returns a release whose tarball is `content`. `name`: of the tarball, in the checksums, too. */
export function signedRelease(key: ReleaseKey, name: string, content: Buffer): ReleaseFiles {
  const sums = `${createHash('sha256').update(content).digest('hex')}  ${name}\n`;
  return {
    tarball: { name, content },
    sums: { name: 'SHA256SUMS', content: Buffer.from(sums) },
    signature: { name: 'SHA256SUMS.minisig', content: Buffer.from(key.sign(sums)) },
  };
}
