import { randomBytes, randomUUID } from 'node:crypto';

/** The only source of identities and secrets in both programs, so that a simulation can repeat them. */
export interface Ids {
  uuid(): string;
  /** `bytes` random bytes as lower-case hexadecimal digits, two a byte. */
  hex(bytes: number): string;
}

export const randomIds: Ids = {
  uuid: () => randomUUID(),
  hex: (bytes) => randomBytes(bytes).toString('hex'),
};
