/** The oldest CUDA version that a template supports. */
export const leastCuda = `
-- Null: any.
ALTER TABLE templates ADD COLUMN cuda_min TEXT;
`;
