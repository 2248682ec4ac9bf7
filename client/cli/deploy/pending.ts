import { isDeepStrictEqual } from 'node:util';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { stateFolder } from '../context/paths.js';
import { readPrivate, writePrivate } from '../context/private-file.js';
import type { Terminal } from '../terminal/terminal.js';
import type { DeployBody } from './plan.js';

/** A deploy that was sent, and whose answer has not come yet. */
export interface Pending {
  key: string;
  url: string;
  organization_id: string | null;
  body: DeployBody;
  /** Milliseconds since 1970. */
  sent_at: number;
  /** The process that waits for the answer. */
  pid: number;
}

/** So long the control plane knows the key. */
const KNOWN_MS = 24 * 3_600_000;
const FILE = /^[0-9a-f-]{36}\.json$/;

/**
 * The deploys whose answers were lost, by a Ctrl-C or a network: one that is sent again with its key and body deploys nothing twice. A
 * file for each, until it is answered.
 */
export class PendingDeploys {
  private readonly folder: string;

  constructor(private readonly terminal: Terminal) {
    this.folder = join(stateFolder(terminal.env), 'deploys');
  }

  /** Notes that a deploy is sent now. */
  keep(pending: Pending): void {
    writePrivate(join(this.folder, `${pending.key}.json`), JSON.stringify(pending));
  }

  /** Forgets a deploy that was answered. */
  forget({ key }: Pending): void {
    rmSync(join(this.folder, `${key}.json`), { force: true });
  }

  /**
   * Returns the deploys of this control plane and organization that nobody waits for any more, the newest first. Deletes those that the
   * control plane does not know any more.
   */
  left(url: string, organizationId: string | null): Pending[] {
    const all = this.read();
    for (const old of all.filter(({ sent_at }) => sent_at < this.terminal.now() - KNOWN_MS)) this.forget(old);
    return all
      .filter(({ sent_at }) => sent_at >= this.terminal.now() - KNOWN_MS)
      .filter((each) => each.url === url && each.organization_id === organizationId && !isAlive(each.pid))
      .sort((one, other) => other.sent_at - one.sent_at);
  }

  private read(): Pending[] {
    let files: string[];
    try {
      files = readdirSync(this.folder);
    } catch {
      return [];
    }
    return files
      .filter((file) => FILE.test(file))
      .flatMap((file) => {
        const text = readPrivate(join(this.folder, file));
        try {
          return text === undefined ? [] : [JSON.parse(text) as Pending];
        } catch {
          rmSync(join(this.folder, file), { force: true });
          return [];
        }
      });
  }
}

/** What can differ between two deploys that ask for the same: the moment that --for counts from, and the price that was shown. */
const OF_THEIR_TIME = { stop_at: null, max_gpu_per_hour_micro: null, max_disk_per_hour_micro: null };

/** Tells whether two deploys ask for the same. */
export const asksForTheSame = (one: DeployBody, other: DeployBody): boolean =>
  isDeepStrictEqual({ ...one, ...OF_THEIR_TIME }, { ...other, ...OF_THEIR_TIME }) &&
  Boolean(one.stop_at) === Boolean(other.stop_at);

function isAlive(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
