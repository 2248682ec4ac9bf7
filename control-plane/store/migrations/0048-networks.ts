/** Networks from which somebody has set a new password are known, too. */
export const networks = `
-- Whether the user has signed in from there; 0: the user has only set a new password there.
ALTER TABLE known_networks ADD COLUMN has_signed_in INTEGER NOT NULL DEFAULT 1 CHECK (has_signed_in IN (0, 1));
`;
