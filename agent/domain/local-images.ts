/** The images of the host that its owner rents out: those that were made there, or those with exactly these names. */
export type LocalImages = 'any' | readonly string[];
