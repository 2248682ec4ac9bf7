/** Which images that were made on a host, and came from no registry, its owner rents out: all, or those of exactly these names. */
export type LocalImages = 'any' | readonly string[];

/** Whether renters may have the image of this name where it was made on the host. */
export function isRentedOut(local: LocalImages, name: string): boolean {
  return local === 'any' || local.includes(name);
}
