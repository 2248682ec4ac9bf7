import { mkdir, readFile, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { UNKNOWN_DATA_ROOT, type DataRoot } from '../../../domain/data-root.js';
import { Failure } from '../../../domain/failure.js';
import { writeDurably } from '../../../host/durable-file.js';

const NAME = /^[A-Za-z0-9-]{1,64}$/;

/**
 * Stores in which data root each instance of this host was created, in a small file for each. They are not in the
 * journal, because the doctor, and the process that stops a single workload, read them while the agent runs.
 */
export class DataRootNotes {
  private writing: Promise<void> = Promise.resolve();

  constructor(private readonly folder: string) {}

  /** Returns the data root of each instance that can have a container. */
  async read(): Promise<Map<string, DataRoot>> {
    const names = (await readdir(this.folder).catch(none)).filter((name) => NAME.test(name));
    return new Map(await Promise.all(names.map(async (name) => [name, await this.readOne(name)] as const)));
  }

  /**
   * Writes the data root durably; must be called before the container is created. Throws Failure CONTAINER_FAILED for
   * an invalid id.
   */
  async note(instanceId: string, root: DataRoot): Promise<void> {
    const file = this.fileOf(instanceId);
    const written = this.writing.then(() => this.write(file, root));
    this.writing = written.catch(() => undefined);
    await written;
  }

  private async write(file: string, root: DataRoot): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    await writeDurably(file, JSON.stringify(root), 0o600);
  }

  /** Removes the file of an instance whose container is gone. */
  async forget(instanceId: string): Promise<void> {
    if (NAME.test(instanceId)) await rm(join(this.folder, instanceId), { force: true });
  }

  private async readOne(name: string): Promise<DataRoot> {
    try {
      return JSON.parse(await readFile(join(this.folder, name), 'utf8')) as DataRoot;
    } catch {
      return UNKNOWN_DATA_ROOT;
    }
  }

  private fileOf(instanceId: string): string {
    if (!NAME.test(instanceId)) throw new Failure('CONTAINER_FAILED', `"${instanceId}" is not a valid instance id`);
    return join(this.folder, instanceId);
  }
}

/** Returns no names if the folder does not exist yet. Throws any other error. */
function none(error: NodeJS.ErrnoException): string[] {
  if (error.code !== 'ENOENT') throw error;
  return [];
}
