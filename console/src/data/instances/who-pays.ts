/** Says to those who may not pay who may. */
export const WHO_PAYS = 'An admin of the organization, or a member with the role billing, adds money.';
