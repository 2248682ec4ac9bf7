import type { Readable } from 'node:stream';
import { MINUTE_MS } from '../../shared/time.js';
import { Refusal } from '../domain/refusal.js';

/** How many hosts load a release at once. */
export const MOST_DOWNLOADS = 4;
/** How many of them are of one enrollment token or one host, which leaves room for others. */
const MOST_OF_ONE = 2;
/** After so long a download is cut. The host goes on where it was. */
const LONGEST_MS = 15 * MINUTE_MS;

/** Bounds the downloads of a release, so that nobody holds a place for ever, and nobody all places. */
export class Downloads {
  private readonly underWay: string[] = [];

  constructor(private readonly longestMs = LONGEST_MS) {}

  /**
   * Opens a download of `who`, the hash of a token or the id of a machine; it counts until its stream is closed. Refuses with
   * UNAVAILABLE while too many are under way, of all or of this one.
   */
  async open<Opened extends { stream: Readable }>(who: string, opening: () => Promise<Opened>): Promise<Opened> {
    if (this.underWay.length >= MOST_DOWNLOADS)
      throw new Refusal('UNAVAILABLE', `${MOST_DOWNLOADS} hosts load the release now; try again in a minute`);
    if (this.underWay.filter((each) => each === who).length >= MOST_OF_ONE)
      throw new Refusal(
        'UNAVAILABLE',
        `${MOST_OF_ONE} downloads of this token or host are under way; try again in a minute`,
      );
    this.underWay.push(who);
    const leave = () => this.underWay.splice(this.underWay.indexOf(who), 1);
    try {
      const opened = await opening();
      const timer = setTimeout(() => opened.stream.destroy(), this.longestMs).unref();
      opened.stream.once('close', () => {
        clearTimeout(timer);
        leave();
      });
      return opened;
    } catch (error) {
      leave();
      throw error;
    }
  }
}
