import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';

const SEARCHED_COMMITS = 3_000;

function git(...args: string[]): string {
  return execFileSync('git', args, { encoding: 'utf8', maxBuffer: 1e9 });
}

const named = (list: string) => list.split('\0').filter((file) => file !== '');

/** The files of the working tree, without those that git ignores. */
export function filesOfTree(): string[] {
  // Git also lists what was removed and is not committed yet.
  return named(git('ls-files', '-z', '--cached', '--others', '--exclude-standard')).filter((file) => existsSync(file));
}

/** The commit of the working tree and those before it, the latest first. */
export function ancestors(): string[] {
  return git('rev-list', `--max-count=${SEARCHED_COMMITS}`, 'HEAD').trim().split('\n');
}

/** The files of the working tree that differ from a commit, new and removed ones, too. */
export function changedSince(commit: string): string[] {
  const differing = named(git('diff', '-z', '--name-only', '--no-renames', commit));
  return [...differing, ...named(git('ls-files', '-z', '--others', '--exclude-standard'))];
}
