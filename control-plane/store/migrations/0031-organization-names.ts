/** Lets operators find organizations by the beginning of their names. */
export const organizationNames = `
CREATE INDEX organizations_by_name ON organizations (name COLLATE NOCASE, id);
`;
