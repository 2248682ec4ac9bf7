import { randomUUID } from 'node:crypto';
import { closeSync, openSync, rmSync, statSync, writeSync, type Stats } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { SetupError, messageOf } from './coded-error.js';

/** A full disk cannot store this. */
const PROBE = Buffer.alloc(4_096);

/** Throws SetupError unless `file` can be read. Its one line names the user, the action and the path. */
export function requireReadable(file: string): void {
  const copy = `install -o ${userName()} -m 600 ${file} ...`;
  const ifDenied = `the user ${userName()} may not read ${file}: put a copy of it where that user may ("${copy}")`;
  const found = look(file, `there is no file ${file}`, ifDenied);
  if (!found.isFile()) throw new SetupError(`${file} is not a file`);
  try {
    closeSync(openSync(file, 'r'));
  } catch (error) {
    throw denied(error, ifDenied);
  }
}

/** Throws SetupError unless files in `folder` can be created and written: creates and removes one. */
export function requireWritableFolder(folder: string): void {
  const ifDenied = `the user ${userName()} may not write in ${folder}: name a folder in which that user may`;
  const found = look(folder, `there is no folder ${folder}`, ifDenied);
  if (!found.isDirectory()) throw new SetupError(`${folder} is not a folder`);
  try {
    probe(join(folder, `.gpurent-${randomUUID()}`));
  } catch (error) {
    throw denied(error, ifDenied);
  }
}

/** Checks the folder of a file by {@link requireWritableFolder}. */
export function requireWritableFolderOf(file: string): void {
  requireWritableFolder(dirname(resolve(file)));
}

/** Returns the reason of a failed file operation in words; for any other error, its message. */
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

/** Returns whether the file system threw the error. */
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

function look(path: string, ifAbsent: string, ifDenied: string): Stats {
  try {
    return statSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') throw new SetupError(ifAbsent, { cause: error });
    throw denied(error, ifDenied);
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
