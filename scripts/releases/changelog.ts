/** The kinds of changes, in the order in which people read them, with their titles. */
const TITLES = {
  must: 'What you must do',
  security: 'Security',
  added: 'Added',
  changed: 'Changed',
  fixed: 'Fixed',
} as const;
export const LONGEST_CHANGE = 400;

/** Files of the folder `changes` that are no change. */
const OTHERS = new Set(['README.md', 'summary.md']);

/** Returns the files that hold a change. */
export function changesIn(names: readonly string[]): string[] {
  return names.filter((name) => !OTHERS.has(name)).sort();
}

/**
 * Joins changes to the section of a release, without its heading. `files`: the content of each file of `changes`, by its name. Throws an
 * Error that names the first file whose name or length is wrong.
 */
export function joinChanges(files: ReadonlyMap<string, string>): string {
  const kinds = Object.keys(TITLES) as (keyof typeof TITLES)[];
  const changes = changesIn([...files.keys()]).map((name) => {
    const kind = kinds.find((each) => name.endsWith(`.${each}.md`));
    const text = (files.get(name) ?? '').trim();
    if (kind === undefined)
      throw new Error(`changes/${name}: call it NAME.KIND.md, with one of the kinds ${kinds.join(', ')}`);
    if (text === '' || text.length > LONGEST_CHANGE || text.includes('\n'))
      throw new Error(`changes/${name}: write one line of at most ${LONGEST_CHANGE} characters`);
    return { kind, text };
  });
  const sections = kinds.flatMap((kind) => {
    const lines = changes.flatMap((change) => (change.kind === kind ? [`- ${change.text}`] : []));
    return lines.length === 0 ? [] : [`${TITLES[kind]}\n\n${lines.join('\n')}`];
  });
  const summary = files.get('summary.md')?.trim();
  return [...(summary === undefined ? [] : [summary]), ...sections].join('\n\n');
}

/** Returns a changelog with the section of a release before those of earlier ones. */
export function withRelease(changelog: string, heading: string, section: string): string {
  const at = changelog.search(/^## /m);
  const [before, after] = at < 0 ? [`${changelog.trimEnd()}\n\n`, ''] : [changelog.slice(0, at), changelog.slice(at)];
  return `${before}## ${heading}\n\n${section}\n${after === '' ? '' : `\n${after}`}`;
}
