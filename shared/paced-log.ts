import { MINUTE_MS } from './time.js';
import type { Clock } from './clock.js';
import type { Logger } from './logger.js';

const EVERY_MS = MINUTE_MS;
/** The number of troubles remembered at once. */
const MOST = 256;
const MOST_CHARS = 200;

/**
 * Limits the log lines about a repeated failure: writes a trouble at once, and then at most once a minute, with the number of lines
 * left out.
 */
export class PacedLog {
  /** Ordered by the last line written, newest last. */
  private readonly written = new Map<string, { at: number; unsaid: number }>();

  constructor(
    private readonly clock: Pick<Clock, 'monotonic'>,
    private readonly logger: Logger,
  ) {}

  /** Writes a line, or counts it as left out. `trouble` names the failure if the message varies; numbers in it are ignored. */
  write(level: 'info' | 'warn' | 'error', message: string, fields: object = {}, trouble = message): void {
    const key = trouble.replace(/\d+/g, '#').slice(0, MOST_CHARS);
    const known = this.written.get(key);
    const now = this.clock.monotonic();
    if (known && now - known.at < EVERY_MS) {
      known.unsaid++;
      return;
    }
    this.written.delete(key);
    this.written.set(key, { at: now, unsaid: 0 });
    const [oldest] = this.written.keys();
    if (this.written.size > MOST && oldest !== undefined) this.written.delete(oldest);
    const unsaid = known?.unsaid ?? 0;
    this.logger[level](
      fields,
      unsaid === 0 ? message : `${message} (and ${unsaid} times more since that was said last)`,
    );
  }
}
