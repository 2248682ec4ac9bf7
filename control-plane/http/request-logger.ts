import type { FastifyBaseLogger } from 'fastify';

type Bindings = Parameters<FastifyBaseLogger['child']>[0];
type Line = [object: unknown, message?: string];

/** The logger of one request. It makes the child of the server's logger with its first line, because most requests log nothing. */
export class RequestLogger {
  private made: FastifyBaseLogger | undefined;

  constructor(
    private readonly parent: FastifyBaseLogger,
    private readonly bindings: Bindings,
  ) {}

  get level() {
    return this.parent.level;
  }

  child(...from: Parameters<FastifyBaseLogger['child']>): FastifyBaseLogger {
    return this.own.child(...from);
  }

  silent(): void {}

  trace(...line: Line): void {
    this.own.trace(...line);
  }

  debug(...line: Line): void {
    this.own.debug(...line);
  }

  info(...line: Line): void {
    this.own.info(...line);
  }

  warn(...line: Line): void {
    this.own.warn(...line);
  }

  error(...line: Line): void {
    this.own.error(...line);
  }

  fatal(...line: Line): void {
    this.own.fatal(...line);
  }

  private get own(): FastifyBaseLogger {
    return (this.made ??= this.parent.child(this.bindings));
  }
}
