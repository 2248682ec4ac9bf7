/** The images without a registry, built on the host, that its owner rents out: all, or those with exactly these names. */
export type LocalImages = 'any' | readonly string[];

/** Tells whether renters can use a locally built image with this name. */
export function isRentedOut(local: LocalImages, name: string): boolean {
  return local === 'any' || local.includes(name);
}
