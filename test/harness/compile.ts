import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type ts from 'typescript';

/** Compiler options, as a tsconfig.json has them. */
export type CompilerOptions = Readonly<Record<string, unknown>>;

/** How a strict project compiles that uses nothing of this repository. */
export const STRICT: CompilerOptions = {
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  target: 'es2022',
  module: 'esnext',
  moduleResolution: 'bundler',
  lib: ['es2022', 'dom', 'dom.iterable'],
  types: [],
};

/**
 * Compiles programs. Returns what is wrong with them. By day only TypeScript 7 compiles them, which takes a tenth of the time; at night the
 * TypeScript that most users have, too.
 */
export function compile(files: readonly string[], options: CompilerOptions = STRICT): string[] {
  const faults = compileNatively(files, options);
  return process.env['TEST_NIGHTLY'] === undefined ? faults : [...faults, ...compileAsUsersDo(files, options)];
}

function compileNatively(files: readonly string[], compilerOptions: CompilerOptions): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'gpurent-compile-'));
  try {
    const project = join(folder, 'tsconfig.json');
    writeFileSync(project, JSON.stringify({ compilerOptions, files }));
    const program = 'node_modules/typescript-native/bin/tsc';
    const { status, stdout, stderr } = spawnSync(process.execPath, [program, '--pretty', 'false', '-p', project], {
      encoding: 'utf8',
    });
    return status === 0
      ? []
      : [...stdout.split('\n').filter((line) => line !== ''), `tsc ended with ${status}${stderr}`];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function compileAsUsersDo(files: readonly string[], given: CompilerOptions): string[] {
  const typescript = createRequire(import.meta.url)('typescript') as typeof ts;
  const { options, errors } = typescript.convertCompilerOptionsFromJson(given, process.cwd());
  const program = typescript.createProgram(files, options);
  const faults = [...errors, ...typescript.getPreEmitDiagnostics(program), ...program.emit().diagnostics];
  return faults.map(({ file, start, messageText }) => {
    const line = file && start !== undefined ? file.getLineAndCharacterOfPosition(start).line + 1 : 0;
    return `${file?.fileName ?? ''}:${line} ${typescript.flattenDiagnosticMessageText(messageText, ' ')}`;
  });
}
