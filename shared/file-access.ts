import { randomUUID } from 'node:crypto';
import { closeSync, openSync, rmSync, statSync, writeSync, type Stats } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { SetupError, messageOf } from './coded-error.js';

/** What a disk that is full does not take any more. */
const PROBE = Buffer.alloc(4_096);

/** Throws SetupError, in one line that says which user may not do what where, unless `file` can be read. */
export function requireReadable(file: string): void {
  const found = look(file, `there is no file ${file}`);
  if (!found.isFile()) throw new SetupError(`${file} is no file`);
  try {
    closeSync(openSync(file, 'r'));
  } catch (error) {
    const copy = `install -o ${userName()} -m 600 ${file} ...`;
    throw denied(
      error,
      `the user ${userName()} may not read ${file}: put a copy of it where that user may ("${copy}")`,
    );
  }
}

/** The same, unless files can be made in the folder and take something: one is made and removed. */
export function requireWritableFolder(folder: string): void {
  const found = look(folder, `there is no folder ${folder}`);
  if (!found.isDirectory()) throw new SetupError(`${folder} is no folder`);
  try {
    probe(join(folder, `.gpurent-${randomUUID()}`));
  } catch (error) {
    throw denied(error, `the user ${userName()} may not write in ${folder}: name a folder in which that user may`);
  }
}

/** The same of the folder of a file. */
export function requireWritableFolderOf(file: string): void {
  requireWritableFolder(dirname(resolve(file)));
}

/** What has gone wrong with a file, in words; the message of whatever else was thrown. */
export function fileTroubleOf(error: unknown): string {
  const { code, path, dest } = error as { code?: unknown; path?: string; dest?: string };
  const file = dest ?? path ?? 'it';
  switch (code) {
    case 'EACCES':
    case 'EPERM':
      return `the user ${userName()} may not write or read ${file}`;
    case 'ENOSPC':
    case 'SQLITE_FULL':
      return 'no space is left on its disk';
    case 'EROFS':
      return 'its disk is read-only';
    default:
      return messageOf(error);
  }
}

/** Whether it was thrown by the file system. */
export function isFileTrouble(error: unknown): boolean {
  return error instanceof Error && typeof (error as NodeJS.ErrnoException).syscall === 'string';
}

function probe(file: string): void {
  const made = openSync(file, 'wx', 0o600);
  try {
    writeSync(made, PROBE);
  } finally {
    closeSync(made);
    rmSync(file);
  }
}

function look(path: string, ifAbsent: string): Stats {
  try {
    return statSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') throw new SetupError(ifAbsent, { cause: error });
    throw denied(error, `the user ${userName()} may not look at ${path}`);
  }
}

function denied(error: unknown, message: string): SetupError {
  const { code } = error as NodeJS.ErrnoException;
  return new SetupError(code === 'EACCES' || code === 'EPERM' ? message : fileTroubleOf(error), { cause: error });
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.geteuid?.());
  }
}
