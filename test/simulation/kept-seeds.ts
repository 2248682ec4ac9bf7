/**
 * Seeds that have found something. With each change of the simulation a seed does something else, so what each found is put in again by
 * found-bugs.ts. By day only the quick ones run.
 */
export const KEPT_SEEDS: readonly { seed: number; steps: number; found: string; onlyAtNight?: true }[] = [
  {
    seed: 34,
    steps: 300,
    found: 'a run that was told of as over was charged again by an older word that it was up',
    onlyAtNight: true,
  },
  {
    seed: 63,
    steps: 400,
    found: 'an end that a newer store had heard was never told to the older one',
    onlyAtNight: true,
  },
  { seed: 73, steps: 330, found: 'what had interrupted a workload was forgotten with the agent' },
  // By day it is one of the chosen seeds, with as many steps.
  { seed: 90, steps: 500, found: 'a container that no store knew stayed for ever', onlyAtNight: true },
  {
    seed: 132,
    steps: 100,
    found: 'a lost journal took what had gone down with its host for ended',
    onlyAtNight: true,
  },
  { seed: 226, steps: 100, found: 'a clock set back hid that Docker had been away' },
  { seed: 230, steps: 340, found: 'a start took a workload for running that an earlier stop was taking down' },
  {
    seed: 811_000_066,
    steps: 150,
    found: 'a lost journal took a workload that its host had stopped for want of pay for ended',
    onlyAtNight: true,
  },
];
