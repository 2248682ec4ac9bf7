/**
 * The seeds of the first hundred that together reach most in 500 steps, the one that adds most first: `npm run choose-seeds --
 * --seeds 100` has chosen them, by the code that runs and by what happens right after what. The last adds a five-hundredth of
 * what the first reaches.
 */
export const CHOSEN_SEEDS: readonly number[] = [1, 90, 84, 19, 30, 100, 44, 9, 97, 53, 83, 88, 42, 27, 81, 70];
