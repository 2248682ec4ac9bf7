/** What is charged, and what is told of it. */
export const money = `
-- What the balance did not cover of the millisecond in which it ran out; 0 again once a credit has taken it into account.
ALTER TABLE meter_intervals ADD COLUMN absorbed_micro INTEGER NOT NULL DEFAULT 0 CHECK (absorbed_micro >= 0);
`;
