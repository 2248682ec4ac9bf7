import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { Refusal } from '../../domain/refusal.js';

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
const SALT_BYTES = 16;

/** Most concurrent hashes: each takes a thread of libuv's small pool, which file access and DNS lookups need, too. */
const AT_ONCE = 2;
/** Most requests that wait for a hash. The last of them waits about ten seconds. */
const MOST_WAITING = 100;
const RETRY_SECONDS = 10;

/**
 * Hashes and verifies passwords, a few at a time; other requests wait in a queue. A stored hash contains its own cost, so the cost
 * of new hashes can change. Refuses with RATE_LIMITED when the queue is full.
 */
export class Passwords {
  /** A hash that no password matches and that costs as much as any other. */
  private readonly nobodysHash: string;
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly cost: PasswordCost = PASSWORD_COST) {
    this.nobodysHash = stored(cost, randomBytes(SALT_BYTES), randomBytes(HASH_BYTES));
  }

  /** Returns `scrypt$N$r$p$salt$hash`, salt and hash in base64. */
  async hash(password: string): Promise<string> {
    const salt = randomBytes(SALT_BYTES);
    return stored(this.cost, salt, await this.inTurn(() => stretch(password, salt, HASH_BYTES, this.cost)));
  }

  /**
   * Tells whether a password matches. Without a stored hash (unknown e-mail address, account without a password) it takes as long, and
   * returns false.
   */
  async verify(password: string, known: string | undefined): Promise<boolean> {
    const hasPassword = known !== undefined && known !== '';
    const [, n, r, p, salt, hash] = (hasPassword ? known : this.nobodysHash).split('$');
    if (!salt || !hash) return false;
    const expected = Buffer.from(hash, 'base64');
    const cost = { N: Number(n), r: Number(r), p: Number(p) };
    const derive = () => stretch(password, Buffer.from(salt, 'base64'), expected.length, cost);
    const actual = await this.inTurn(derive);
    return timingSafeEqual(actual, expected) && hasPassword;
  }

  private async inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.waiting.length >= MOST_WAITING)
      throw new Refusal('RATE_LIMITED', `too many sign-ins at this moment; try again in ${RETRY_SECONDS} s`, {
        retry_after_seconds: RETRY_SECONDS,
      });
    if (this.running >= AT_ONCE) await new Promise<void>((resolve) => this.waiting.push(resolve));
    else this.running++;
    try {
      return await work();
    } finally {
      // The next waiting request takes over this place, so `running` does not change.
      const next = this.waiting.shift();
      if (next) next();
      else this.running--;
    }
  }
}

function stored({ N, r, p }: PasswordCost, salt: Buffer, hash: Buffer): string {
  return ['scrypt', N, r, p, salt.toString('base64'), hash.toString('base64')].join('$');
}

function stretch(password: string, salt: Buffer, bytes: number, cost: PasswordCost): Promise<Buffer> {
  return derive(password.normalize('NFKC'), salt, bytes, { ...cost, maxmem: MAX_MEMORY_BYTES });
}
