import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { Source } from './source.js';

/** Another format, or another way to find parts: maps of the former are of no use. */
const FORMAT = 1;

const KEPT_MAPS = 20;

/** What each test file ran and read, at one commit. */
export interface TestMap {
  commit: string;
  /** What differed from that commit then. */
  uncommitted: string[];
  /** The test files with a record; everywhere else a test is its place in this list. */
  tests: string[];
  /** Those without one: they failed. */
  unrecorded: string[];
  /** Sets of tests; everywhere else a set is its place in this list. */
  sets: number[][];
  /** By path without extension. */
  sources: Record<string, MappedSource>;
  /** Which set of tests read a file or folder, or named it in a command. */
  touched: Record<string, number>;
}

export interface MappedSource extends Source {
  file: string;
  /** Whether its functions were recorded. */
  isRecorded: boolean;
  /** For each part the set of tests that ran it. */
  ranBy: number[];
  /** The set of tests that loaded it. */
  loadedBy: number;
  /** The files that ran a part while they were loaded, by the part. */
  ranWhileLoading: Record<number, string[]>;
}

/** Where maps of all working trees are. */
function folderOfMaps(): string {
  const cache = process.env['GPURENT_CACHE'] ?? '';
  return join(cache === '' ? join(homedir(), '.cache', 'gpurent') : cache, `test-map-${FORMAT}`);
}

function fileOf(commit: string): string {
  return join(folderOfMaps(), `${commit}.json.gz`);
}

export function writeMap(map: TestMap): string {
  const file = fileOf(map.commit);
  mkdirSync(folderOfMaps(), { recursive: true });
  writeFileSync(`${file}.part`, gzipSync(JSON.stringify(map)));
  renameSync(`${file}.part`, file);
  removeOldMaps();
  return file;
}

function removeOldMaps(): void {
  const maps = readdirSync(folderOfMaps()).map((name) => join(folderOfMaps(), name));
  const newestFirst = maps.sort((one, other) => statSync(other).mtimeMs - statSync(one).mtimeMs);
  for (const file of newestFirst.slice(KEPT_MAPS)) rmSync(file, { force: true });
}

/** The map of the first of these commits that has one. */
export function findMap(commits: readonly string[]): TestMap | undefined {
  const commit = commits.find((one) => existsSync(fileOf(one)));
  if (commit === undefined) return undefined;
  return JSON.parse(gunzipSync(readFileSync(fileOf(commit))).toString()) as TestMap;
}
