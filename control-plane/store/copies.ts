import { readFileSync, statSync } from 'node:fs';

/** A place in which `gpurent-copies` keeps copies. */
export interface CopyPlace {
  target: string;
  /** When the newest copy there was made, in milliseconds since 1970 UTC; null: there is none. */
  at: number | null;
}

/** The script writes at most eight lines. */
const MOST_BYTES = 16_384;
const LINE = /^(never|\d{1,12})\t([\x21-\x7e]{1,1024})$/;

/**
 * Returns the places of copies, from the file that `gpurent-copies` writes beside the database; none if it has never run. A file that
 * cannot be read is a place without a copy, so that somebody looks at it.
 */
export function readCopies(database: string): CopyPlace[] {
  const file = `${database}.copies`;
  try {
    if (statSync(file).size > MOST_BYTES) return [{ target: file, at: null }];
    const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
    const found = lines.map((line) => {
      const [, at = '', target = ''] = LINE.exec(line) ?? [];
      return target === '' ? { target: file, at: null } : { target, at: at === 'never' ? null : Number(at) * 1_000 };
    });
    return [...new Map(found.map((place) => [place.target, place])).values()];
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? [] : [{ target: file, at: null }];
  }
}

/** Returns how old the newest copy of a place is, in milliseconds; Infinity if there is none. */
export function ageOf({ at }: CopyPlace, now: number): number {
  return at === null ? Infinity : Math.max(now - at, 0);
}
