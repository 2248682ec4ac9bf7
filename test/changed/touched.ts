import child from 'node:child_process';
import fs from 'node:fs';
import fsPromises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const READS = ['readFileSync', 'readFile', 'readdirSync', 'readdir', 'createReadStream', 'openSync', 'open'];
const COPIES = ['copyFileSync', 'copyFile', 'cpSync', 'cp', 'statSync', 'stat', 'existsSync'];
const STARTS = ['spawn', 'spawnSync', 'exec', 'execSync', 'execFile', 'execFileSync', 'fork'];
/** What looks like a path in the words of a command. */
const PATHS = /[\w@.-]+(?:\/[\w@.-]+)+/g;

type Callable = (...args: unknown[]) => unknown;

/**
 * From now on notes the files and folders of the repository that this process reads, and those that the commands name which it
 * starts.
 */
export function noteTouched(root: string): Set<string> {
  const touched = new Set<string>();
  const note = (path: string) => {
    const file = relative(root, path);
    if (!/^(\.\.|\/|node_modules|\.git\/)/.test(file)) touched.add(file);
  };
  const noteRead = ([path]: unknown[]) => {
    if (typeof path === 'string') note(path);
    else if (path instanceof URL) note(fileURLToPath(path));
  };
  const noteStart = (args: unknown[]) => {
    for (const word of args.flat().filter((arg) => typeof arg === 'string'))
      for (const [path] of word.matchAll(PATHS)) note(path.startsWith(root.slice(1)) ? `/${path}` : path);
  };
  for (const name of [...READS, ...COPIES]) {
    watch(fs, name, noteRead);
    watch(fsPromises, name, noteRead);
  }
  for (const name of STARTS) watch(child, name, noteStart);
  syncBuiltinESMExports();
  return touched;
}

function watch(module: object, name: string, note: (args: unknown[]) => void): void {
  const functions = module as Record<string, Callable | undefined>;
  const original = functions[name];
  if (original) functions[name] = watched(original, note);
}

/** The same function, also as `promisify` returns it. */
function watched(original: Callable, note: (args: unknown[]) => void): Callable {
  return new Proxy(original, {
    apply(target, self, args: unknown[]) {
      note(args);
      return Reflect.apply(target, self, args);
    },
    get(target, key, self) {
      const value: unknown = Reflect.get(target, key, self);
      return key === promisify.custom && typeof value === 'function' ? watched(value as Callable, note) : value;
    },
  });
}
