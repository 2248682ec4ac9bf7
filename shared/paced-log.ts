import { MINUTE_MS } from './time.js';
import type { Clock } from './clock.js';
import type { Logger } from './logger.js';

const EVERY_MS = MINUTE_MS;
/** Troubles that are remembered at once. */
const MOST = 256;
const MOST_CHARS = 200;

/**
 * Bounds the lines about what fails again and again: a trouble is written at once, and then once a minute at most, with how often it
 * came in between.
 */
export class PacedLog {
  /** The trouble that was written last comes last. */
  private readonly written = new Map<string, { at: number; unsaid: number }>();

  constructor(
    private readonly clock: Pick<Clock, 'monotonic'>,
    private readonly logger: Logger,
  ) {}

  /** `trouble`: what is the matter, where the message does not say it alone; numbers in it make it no other one. */
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
