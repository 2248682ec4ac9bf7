import { randomBytes, randomUUID } from 'node:crypto';

/** The only source of ids and secrets in both programs, so that a simulation can repeat them. */
export interface Ids {
  uuid(): string;
  /** Returns `bytes` random bytes as lower-case hexadecimal digits. */
  hex(bytes: number): string;
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export function isUuid(text: string): boolean {
  return UUID.test(text);
}

export const randomIds: Ids = {
  uuid: () => randomUUID(),
  hex: (bytes) => randomBytes(bytes).toString('hex'),
};
