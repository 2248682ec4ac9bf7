import { createHash, createPublicKey, verify } from 'node:crypto';
import { SetupError } from '../coded-error.js';

const ED25519_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');
const COMMENT = 'trusted comment: ';
const LENGTH_OF_KEY = 42;
const LENGTH_OF_SIGNATURE = 74;

/**
 * Checks a signature of minisign over some content, and returns its trusted comment. `key` and `signature` are the texts of the files.
 * Throws a SetupError that says what is wrong. Signatures that do not hash the content first, which minisign no longer makes, are refused.
 */
export function checkSignature(content: Buffer, signature: string, key: string): string {
  const known = decode(key.split(/\r?\n/)[1], LENGTH_OF_KEY, 'the public key is not one of minisign');
  if (known.toString('latin1', 0, 2) !== 'Ed') throw new SetupError('the public key is not one of minisign');
  const [, encoded, comment = '', global] = signature.split(/\r?\n/);
  const own = decode(encoded, LENGTH_OF_SIGNATURE, 'the signature is not one of minisign');
  if (own.toString('latin1', 0, 2) !== 'ED')
    throw new SetupError('the signature has an old form: sign again with minisign 0.10 or later');
  if (!own.subarray(2, 10).equals(known.subarray(2, 10)))
    throw new SetupError(`the signature is by the key ${idOf(own)}, and the public key is ${idOf(known)}`);
  const publicKey = createPublicKey({
    key: Buffer.concat([ED25519_PREFIX, known.subarray(10)]),
    format: 'der',
    type: 'spki',
  });
  const hash = createHash('blake2b512').update(content).digest();
  const trusted = comment.startsWith(COMMENT) ? comment.slice(COMMENT.length) : '';
  const overComment = decode(global, 64, 'the signature has no signed comment');
  if (
    !verify(null, hash, publicKey, own.subarray(10)) ||
    !verify(null, Buffer.concat([own.subarray(10), Buffer.from(trusted)]), publicKey, overComment)
  )
    throw new SetupError('the signature does not fit: the file was changed after it was signed');
  return trusted;
}

function decode(line: string | undefined, length: number, fault: string): Buffer {
  const bytes = Buffer.from(line ?? '', 'base64');
  // Node passes over what is not base64; minisign refuses it.
  if (bytes.length !== length || bytes.toString('base64') !== line) throw new SetupError(fault);
  return bytes;
}

/** As minisign prints it. */
function idOf(bytes: Buffer): string {
  return Buffer.from(bytes.subarray(2, 10)).reverse().toString('hex').toUpperCase();
}
