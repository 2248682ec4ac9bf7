/** The percent of a rented disk at which its renter is told, the lowest first. */
const STEPS = [90, 98] as const;
export type DiskStep = (typeof STEPS)[number];

/** A step counts again once the disk is this many percent below it. */
const FALL = 5;

/** Returns the step that a disk has reached, after `told` was the last one that counts; null: none. */
export function diskStepOf(usedPercent: number, told: DiskStep | null): DiskStep | null {
  const reached = STEPS.findLast((step) => usedPercent >= step) ?? null;
  if (told === null || (reached !== null && reached >= told)) return reached;
  return usedPercent >= told - FALL ? told : reached;
}

/** Tells whether a renter learns something from a step that follows another one. */
export function isHigherStep(step: DiskStep | null, told: DiskStep | null): step is DiskStep {
  return step !== null && step > (told ?? 0);
}
