/** Networks from which somebody has set a new password are known, too; and whose it is what strangers take of shared totals. */
export const networks = `
-- Whether the user has signed in from there; 0: the user has only set a new password there.
ALTER TABLE known_networks ADD COLUMN has_signed_in INTEGER NOT NULL DEFAULT 1 CHECK (has_signed_in IN (0, 1));

-- From which network it was asked for; null: by an operator, or by an earlier release.
ALTER TABLE link_requests ADD COLUMN network TEXT;
-- From which network it was typed; null: in an earlier release.
ALTER TABLE device_code_guesses ADD COLUMN network TEXT;
`;
