import ts from 'typescript';

/** How a strict project compiles that uses nothing of this repository. */
export const STRICT: ts.CompilerOptions = {
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  lib: ['lib.es2022.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
  types: [],
};

/** Compiles programs. Returns what is wrong with them, one line each. */
export function compile(files: readonly string[], options: ts.CompilerOptions = STRICT): string[] {
  const program = ts.createProgram(files, options);
  const faults = [...ts.getPreEmitDiagnostics(program), ...program.emit().diagnostics];
  return faults.map(({ file, start, messageText }) => {
    const line = file && start !== undefined ? file.getLineAndCharacterOfPosition(start).line + 1 : 0;
    return `${file?.fileName ?? ''}:${line} ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
  });
}
