import type { TestMap } from './test-map.js';

/** The sources that a file imports, also by way of others, and the file itself. */
export function closureOf({ sources }: TestMap, entry: string): ReadonlySet<string> {
  const reached = new Set([entry]);
  for (const key of reached) {
    const source = sources[key];
    if (!source) continue;
    const passed = Object.values(source.exports).flatMap((it) => (typeof it === 'string' ? [] : [it.from]));
    const imported = Object.values(source.imports).map(({ from }) => from);
    for (const next of [...imported, ...passed, ...source.passesOn, ...source.effects]) reached.add(next);
  }
  return reached;
}

/** The source of a program that the build has made, or undefined: `dist/agent/proxy/main.js` is `agent/proxy/main`. */
export function sourceOfProgram(path: string): string | undefined {
  const [, bundle] = /^dist\/bundle\/([\w-]+)\.js$/.exec(path) ?? [];
  if (bundle !== undefined) return `${bundle}/main`;
  return /^dist\/(.+)\.js$/.exec(path)?.[1];
}
