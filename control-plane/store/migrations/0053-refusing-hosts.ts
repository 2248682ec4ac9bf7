/** Since when the host of a machine has taken no new instances, as far as operators were told. */
export const refusingHosts = `
-- Null: it takes them.
ALTER TABLE machines ADD COLUMN refuses_since INTEGER;
`;
