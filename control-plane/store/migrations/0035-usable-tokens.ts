/** Enrollment tokens that still let a host in. */
export const usableTokens = `
CREATE INDEX enrollment_tokens_usable ON enrollment_tokens (expires_at, id) WHERE revoked_at IS NULL AND uses < max_uses;
`;
