import type { IncomingMessage } from 'node:http';
import { messageOf } from '../../../../shared/coded-error.js';
import { Failure } from '../../../domain/failure.js';
import { DEADLINE_MS, reasonOf, statusOf, type Engine } from '../engine.js';
import { containerName } from '../labels.js';

/** Files on the container's disk that Docker itself opens at each start and reads to their end. */
const PATHS = ['/etc/passwd', '/etc/group'] as const;
/** Legitimate account files are far smaller. */
const MOST_BYTES = 1024 * 1024;
/** Bits of Go's file mode; NOT_PLAIN has the bit of every type except a plain file. */
const SYMLINK = 0x0800_0000;
const NOT_PLAIN = 0x8f28_0000;

interface PathStat {
  size: number;
  mode: number;
  linkTarget: string;
}

/**
 * Checks the files that Docker reads when it starts a container that is down: a pipe in their place would block Docker
 * for ever, and a device or a huge file for long. Throws Failure CONTAINER_FAILED.
 */
export async function checkAccountFiles(engine: Engine, instanceId: string): Promise<void> {
  for (const [path, found] of await Promise.all(
    PATHS.map(async (path) => [path, await resolve(engine, instanceId, path)] as const),
  )) {
    if (found && ((found.mode & NOT_PLAIN) !== 0 || found.size > MOST_BYTES))
      throw new Failure(
        'CONTAINER_FAILED',
        `${path} of the workload is no plain file of at most 1 MiB, so the workload cannot be started; deploy again, with an image in which it is one`,
      );
  }
}

/** Returns the file at a path, or the end of the link there, which Docker names. Undefined if nothing is there. */
async function resolve(engine: Engine, instanceId: string, path: string): Promise<PathStat | undefined> {
  const found = await statOf(engine, instanceId, path);
  return found && (found.mode & SYMLINK) !== 0 ? statOf(engine, instanceId, found.linkTarget) : found;
}

async function statOf(engine: Engine, instanceId: string, path: string): Promise<PathStat | undefined> {
  try {
    const answer = (await engine.call('look into the container', DEADLINE_MS.inspect, (docker) =>
      docker.getContainer(containerName(instanceId)).infoArchive({ path }),
    )) as unknown as IncomingMessage;
    answer.resume();
    return parseStat(String(answer.headers['x-docker-container-path-stat']));
  } catch (error) {
    if (error instanceof Failure) throw error;
    if (statusOf(error) === 404) return undefined;
    throw new Failure('CONTAINER_FAILED', `${path} of the workload cannot be checked: ${reasonOf(error)}`, {
      cause: error,
    });
  }
}

function parseStat(header: string): PathStat {
  try {
    const { size, mode, linkTarget } = JSON.parse(Buffer.from(header, 'base64').toString()) as Partial<PathStat>;
    return { size: Number(size), mode: Number(mode), linkTarget: String(linkTarget) };
  } catch (error) {
    throw new Error(`Docker’s answer cannot be read: ${messageOf(error)}`, { cause: error });
  }
}
