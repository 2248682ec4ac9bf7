import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';

const ALGORITHM = 'aes-256-gcm';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const MAC_BYTES = 16;

/** The purpose of an encrypted value. A value that was encrypted for one purpose cannot be decrypted for another. */
export type Purpose =
  | 'template.env'
  | 'template.registry'
  | 'instance.workload'
  | 'instance.access_token'
  | 'workload.origin'
  | 'webhook.secret'
  | 'mail.content'
  | 'issuer.client_secret'
  | 'totp.secret'
  | 'authority_key'
  | 'key-check';

/** Encrypts secrets for the database with AES-256-GCM. Layout of a value: nonce, tag, cipher text. */
export class Encryption {
  /** `key` has 32 bytes and is kept outside the database. */
  constructor(private readonly key: Buffer) {
    if (key.length !== KEY_BYTES) throw new Error(`the secret key has ${key.length} bytes, not ${KEY_BYTES}`);
  }

  /**
   * Returns 16 bytes that nobody without the key can make for this text. Each purpose has a key of its own, which is derived from this
   * one.
   */
  authenticate(purpose: 'mail.unsubscribe' | 'device.user_code', text: string): Buffer {
    const key = Buffer.from(hkdfSync('sha256', this.key, '', purpose, KEY_BYTES));
    return createHmac('sha256', key).update(text).digest().subarray(0, MAC_BYTES);
  }

  /** Encrypts a JSON value. The purpose is authenticated with it. */
  encrypt(purpose: Purpose, value: unknown): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.key, nonce).setAAD(Buffer.from(purpose));
    const sealed = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
  }

  /** Decrypts a value. Throws for another key, another purpose or a changed value. */
  decrypt(purpose: Purpose, sealed: Buffer): unknown {
    const tag = sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES);
    const decipher = createDecipheriv(ALGORITHM, this.key, sealed.subarray(0, NONCE_BYTES))
      .setAAD(Buffer.from(purpose))
      .setAuthTag(tag);
    const plain = Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
    return JSON.parse(plain.toString('utf8')) as unknown;
  }
}
