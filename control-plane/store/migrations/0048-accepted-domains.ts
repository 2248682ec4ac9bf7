/** Operators can accept addresses of a company's sign-in that does not say that it has verified them, as Microsoft Entra. */
export const acceptedDomains = `
ALTER TABLE issuer_domains ADD COLUMN accept_unverified INTEGER NOT NULL DEFAULT 0 CHECK (accept_unverified IN (0, 1));
`;
