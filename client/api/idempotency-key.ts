/** Returns a new Idempotency-Key. `crypto.randomUUID` exists only where a page came over HTTPS or from the same computer. */
export function newIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
