/** Calls all functions, then throws the first error of any. */
export function callEach(functions: readonly (() => void)[]): void {
  const errors: unknown[] = [];
  for (const run of functions) {
    try {
      run();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}
