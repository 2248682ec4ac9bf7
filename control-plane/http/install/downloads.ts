import type { Readable } from 'node:stream';
import { MINUTE_MS } from '../../../shared/time.js';
import { Refusal } from '../../domain/refusal.js';

/** How many hosts load a release at once. */
export const MOST_DOWNLOADS = 4;
/** After so long a download is cut. The script of the host goes on where it was. */
const LONGEST_MS = 15 * MINUTE_MS;

/** Bounds the downloads of a release, so that nobody holds a place for ever. */
export class Downloads {
  private underWay = 0;

  constructor(private readonly longestMs = LONGEST_MS) {}

  /** Opens a download, which counts until its stream is closed. Refuses with UNAVAILABLE while too many are under way. */
  async open<Opened extends { stream: Readable }>(opening: () => Promise<Opened>): Promise<Opened> {
    if (this.underWay >= MOST_DOWNLOADS)
      throw new Refusal('UNAVAILABLE', `${MOST_DOWNLOADS} hosts load the release now; try again in a minute`);
    this.underWay += 1;
    try {
      const opened = await opening();
      const timer = setTimeout(() => opened.stream.destroy(), this.longestMs).unref();
      opened.stream.once('close', () => {
        clearTimeout(timer);
        this.underWay -= 1;
      });
      return opened;
    } catch (error) {
      this.underWay -= 1;
      throw error;
    }
  }
}
