import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A fault of one place, and the tests that must notice it. */
export interface Mutant {
  name: string;
  /** From the repository root. */
  file: string;
  /** Occurs in the file exactly once. */
  before: string;
  after: string;
  /** Test files of the quick project, of which at least one test must fail. */
  tests: readonly string[];
  /** A test on a real Docker Engine that fails, too; the nightly run of the mutants leaves it to its own lane. */
  docker?: string;
}

/** The file's source with the fault in it. Throws unless the text that is to be changed is in there exactly once. */
export function mutated({ name, file, before, after }: Mutant, source: string): string {
  const copies = source.split(before).length - 1;
  if (copies !== 1) throw new Error(`mutant ${name}: its text is in ${file} ${copies} times; write it anew`);
  // Not as a pattern: `$` means itself.
  return source.replace(before, () => after);
}

/** Puts the mutant into the sources under `root`; the answer takes it out again. Throws where it does not apply. */
export function apply(mutant: Mutant, root: string): () => void {
  const path = join(root, mutant.file);
  const source = readFileSync(path, 'utf8');
  writeFileSync(path, mutated(mutant, source));
  return () => writeFileSync(path, source);
}
