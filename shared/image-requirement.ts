/** The most requirements that an agent tells of an image, and their most characters together. */
const MOST_REQUIREMENTS = 16;
const MOST_CHARACTERS = 4_096;
const PRINTABLE = /^[\x20-\x7e]*$/;

/**
 * Tells whether requirements of an image, the values of its `NVIDIA_REQUIRE_*` variables, can be told and kept. Longer ones are never
 * cut: without its last alternatives, a requirement would refuse machines that meet it.
 */
export function areTellable(requirements: readonly string[]): boolean {
  const characters = requirements.reduce((sum, { length }) => sum + length, 0);
  const isBounded = requirements.length <= MOST_REQUIREMENTS && characters <= MOST_CHARACTERS;
  return isBounded && requirements.every((requirement) => PRINTABLE.test(requirement));
}
