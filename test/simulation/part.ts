/** Returns every so-manieth item of a list, from PART/PARTS such as `1/2`, so that processes beside each other share the work. */
export function partOf<T>(part: string, all: readonly T[]): T[] {
  const [number = 1, parts = 1] = part.split('/').map(Number);
  return all.filter((_, index) => index % parts === number - 1);
}
