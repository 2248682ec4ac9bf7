import { relative } from 'node:path';
import { readSource } from './read-source.js';
import { RECORDER } from './recorder.js';

/** Sources of ours whose functions are recorded: not the tests themselves, and not what is generated. */
export function isRecorded(file: string): boolean {
  return (
    /^(agent|client|console\/src|control-plane|scripts|shared|test)\/.*\.tsx?$/.test(file) &&
    !/\.d\.ts$|\.test\.ts$|\/gen\/|^test\/(changed|fixtures)\//.test(file)
  );
}

/** Marks in the code of `file` each function that runs. No line moves. */
export function withRecording(file: string, text: string): { code: string; map: unknown } {
  const { code, map, bodies, start, source } = readSource(file, text);
  const inserted: [at: number, text: string][] = [
    [start, `const __ran = globalThis.${RECORDER}.enter(${JSON.stringify(file)}, ${source.parts.length});`],
    [code.length, `\n;globalThis.${RECORDER}.leave(${JSON.stringify(file)});`],
  ];
  for (const body of bodies) {
    const mark = `__ran[${body.part}] = 1`;
    if (body.isBlock) inserted.push([body.start + 1, `${mark};`]);
    else inserted.push([body.start, `(${mark}, `], [body.end, ')']);
  }
  // One that begins where another ends is inserted after it.
  inserted.sort(([one], [other]) => one - other);
  let at = 0;
  const pieces = inserted.flatMap(([next, piece]) => {
    const before = code.slice(at, next);
    at = next;
    return [before, piece];
  });
  return { code: pieces.join('') + code.slice(at), map };
}

/** A plugin of Vite that puts the recording into our sources. */
function recording(root: string) {
  return {
    name: 'function-recording',
    enforce: 'pre' as const,
    transform(text: string, id: string) {
      const file = relative(root, id.replace(/\?.*$/, ''));
      return isRecorded(file) ? withRecording(file, text) : undefined;
    },
  };
}

interface Config {
  test: { projects: { test: { name: string; setupFiles?: string[] } }[] };
}

/**
 * The configuration of the quick tests with recording. Each file runs in a process of its own: what is done once in a process counts
 * for each.
 */
export function recordingOf(config: Config) {
  const root = process.cwd();
  const quick = config.test.projects.find(({ test }) => test.name === 'quick')?.test;
  const setupFiles = ['test/changed/record.ts', ...(quick?.setupFiles ?? [])];
  return {
    test: {
      ...config.test,
      // A cache knows the sources without recording.
      experimental: { fsModuleCache: false },
      projects: [{ root, plugins: [recording(root)], test: { ...quick, isolate: true, setupFiles } }],
    },
  };
}
