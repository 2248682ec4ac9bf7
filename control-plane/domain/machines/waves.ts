/** So many hosts are upgraded alone before there are waves of several. */
const ALONE = 3;
/** Most hosts in one wave. Four at a time load the release. */
const LARGEST = 32;

/** Returns how many hosts are in a wave of a rollout, counted from 1: one each in the first three, then 2, 4, 8, 16, 32. */
export function waveSize(wave: number): number {
  return wave <= ALONE ? 1 : Math.min(2 ** (wave - ALONE), LARGEST);
}
