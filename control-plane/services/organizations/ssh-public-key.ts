import { createHash } from 'node:crypto';
import sshpk from 'sshpk';
import { isPrivateKey } from '../../domain/identity/private-key.js';
import { invalidField } from '../../domain/refusal.js';

export interface SshPublicKey {
  /** Type and key without the comment, as a line of an authorized_keys file. */
  line: string;
  /** `SHA256:` and the digest of the key in base64, as `ssh-keygen -l` prints it. */
  fingerprint: string;
}

const TYPES = new Set([
  'ssh-ed25519',
  'ssh-rsa',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'sk-ssh-ed25519@openssh.com',
  'sk-ecdsa-sha2-nistp256@openssh.com',
]);
const MIN_RSA_BITS = 2048;
const PRIVATE =
  'this is a private key. It was refused and not stored. Consider it exposed: create a new key with ssh-keygen, remove the public key of this one everywhere, and give the new public key (the .pub file)';

/**
 * Parses one line of OpenSSH's public key format. Accepts Ed25519, ECDSA, their security-key forms, and RSA of at least 2048
 * bits; refuses everything else with VALIDATION_FAILED and the reason.
 */
export function parseSshPublicKey(text: string): SshPublicKey {
  if (isPrivateKey(text)) throw refuse(PRIVATE);
  const [type = '', base64 = ''] = text.trim().split(/\s+/);
  if (/[\r\n]/.test(text.trim())) throw refuse('give exactly one key, on one line');
  if (!TYPES.has(type))
    throw refuse(`give an Ed25519, ECDSA, security-key or RSA public key, such as "ssh-ed25519 AAAA..."`);
  const blob = Buffer.from(base64, 'base64');
  if (blob.toString('base64').replace(/=+$/, '') !== base64.replace(/=+$/, ''))
    throw refuse('the key is not valid base64');
  const key = parsePlain(type, blob);
  if (key.type === 'rsa' && key.size < MIN_RSA_BITS) {
    throw refuse(`an RSA key needs at least ${MIN_RSA_BITS} bits, this one has ${key.size}`);
  }
  return { line: `${type} ${blob.toString('base64')}`, fingerprint: digestOf(blob) };
}

/** Returns the fingerprint of a stored line, such as {@link parseSshPublicKey} returns; null for an empty one. */
export function fingerprintOf(line: string): string | null {
  const [, base64] = line.split(' ');
  return base64 === undefined ? null : digestOf(Buffer.from(base64, 'base64'));
}

function digestOf(blob: Buffer): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`;
}

/** Parses a key with sshpk. It does not know security keys, but their public part is a plain key and the application's name. */
function parsePlain(type: string, blob: Buffer): sshpk.Key {
  try {
    const fields = readFields(blob);
    if (fields[0]?.toString() !== type) throw new Error('the type does not match the key');
    const plainType = type.replace(/^sk-(.*)@openssh\.com$/, '$1');
    const plain = type === plainType ? blob : writeFields([Buffer.from(plainType), ...fields.slice(1, -1)]);
    return sshpk.parseKey(`${plainType} ${plain.toString('base64')}`, 'ssh');
  } catch (error) {
    throw refuse(`the key cannot be read (${error instanceof Error ? error.message : String(error)})`);
  }
}

function readFields(blob: Buffer): Buffer[] {
  const fields: Buffer[] = [];
  for (let offset = 0; offset < blob.length;) {
    const end = offset + 4 + blob.readUInt32BE(offset);
    if (end > blob.length) throw new Error('it is truncated');
    fields.push(blob.subarray(offset + 4, end));
    offset = end;
  }
  return fields;
}

function writeFields(fields: Buffer[]): Buffer {
  return Buffer.concat(
    fields.flatMap((field) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(field.length);
      return [length, field];
    }),
  );
}

function refuse(reason: string) {
  return invalidField('public_key', reason);
}
