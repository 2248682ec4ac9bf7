import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, it } from 'vitest';

const folder = 'scripts';
const scripts = readdirSync(folder)
  .map((name) => join(folder, name))
  .filter((path) => statSync(path).isFile() && readFileSync(path, 'utf8').startsWith('#!/usr/bin/env bash'));
const libraries = readdirSync(join(folder, 'lib')).map((name) => join(folder, 'lib', name));

/** Returns a script's text without comments. */
function code(path: string): string {
  return readFileSync(path, 'utf8').replace(/(^|\s)#.*$/gm, '');
}

/** Returns a script and all libraries that it sources, and that these source. */
function withLibraries(path: string, seen: string[] = []): string[] {
  if (seen.includes(path)) return seen;
  const sourced = [...code(path).matchAll(/^\s*source .*?lib\/([\w-]+\.sh)/gm)].map((match) =>
    join(folder, 'lib', match[1] ?? ''),
  );
  return sourced.reduce((files, each) => withLibraries(each, files), [...seen, path]);
}

function definedFunctions(path: string): string[] {
  return [...code(path).matchAll(/^\s*([a-z][\w-]*)\(\)/gm)].map((match) => match[1] ?? '');
}

/** Returns whether the text calls the function: its name stands where bash expects a command. */
function calls(text: string, name: string): boolean {
  return new RegExp(
    `(?:^|[;&|({!]|\\b(?:if|then|else|do|while|until|exec|in_sandbox|trap|supervise))\\s*${name}(?![\\w=-])`,
    'm',
  ).test(text);
}

it.each(scripts)('%s sources the libraries of all functions that it can reach', (script) => {
  const files = withLibraries(script);
  const known = new Set(files.flatMap(definedFunctions));
  const missing = libraries
    .filter((library) => !files.includes(library))
    .flatMap((library) => definedFunctions(library).map((name) => ({ library, name })))
    .filter(({ name }) => !known.has(name))
    .flatMap(({ library, name }) =>
      files
        .filter((file) => calls(code(file), name))
        .map((file) => `${basename(file)} calls ${name} of ${basename(library)}`),
    );

  expect(missing).toEqual([]);
});
