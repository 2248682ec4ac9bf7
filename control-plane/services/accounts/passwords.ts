import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';

const derive = promisify<string, Buffer, number, { N: number; r: number; p: number; maxmem: number }, Buffer>(scrypt);

/** The cost parameters of scrypt (RFC 7914). */
export interface PasswordCost {
  N: number;
  r: number;
  p: number;
}

/** About 0.2 s of one core and 32 MiB for each hash. */
const PASSWORD_COST: PasswordCost = { N: 2 ** 15, r: 8, p: 3 };
const MAX_MEMORY_BYTES = 64 * 1024 * 1024;
const HASH_BYTES = 32;

/** Hashes passwords and verifies them. A stored hash names its own cost, so the cost of new hashes may change. */
export class Passwords {
  private unknownUserHash: Promise<string> | undefined;

  constructor(private readonly cost: PasswordCost = PASSWORD_COST) {}

  /** Returns `scrypt$N$r$p$salt$hash`, salt and hash in base64. */
  async hash(password: string): Promise<string> {
    const { N, r, p } = this.cost;
    const salt = randomBytes(16);
    const hash = await stretch(password, salt, HASH_BYTES, this.cost);
    return ['scrypt', N, r, p, salt.toString('base64'), hash.toString('base64')].join('$');
  }

  /** Without a stored hash (an unknown e-mail address) it takes as long as with one, and returns false. */
  async verify(password: string, stored: string | undefined): Promise<boolean> {
    this.unknownUserHash ??= this.hash('nobody has this password');
    const [, n, r, p, salt, hash] = (stored ?? (await this.unknownUserHash)).split('$');
    if (!salt || !hash) return false;
    const expected = Buffer.from(hash, 'base64');
    const cost = { N: Number(n), r: Number(r), p: Number(p) };
    const actual = await stretch(password, Buffer.from(salt, 'base64'), expected.length, cost);
    return timingSafeEqual(actual, expected) && stored !== undefined;
  }
}

function stretch(password: string, salt: Buffer, bytes: number, cost: PasswordCost): Promise<Buffer> {
  return derive(password.normalize('NFKC'), salt, bytes, { ...cost, maxmem: MAX_MEMORY_BYTES });
}
