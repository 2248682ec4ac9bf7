import { pino, type DestinationStream, type Logger } from 'pino';
import { createRequire } from 'node:module';
import type PinoPretty from 'pino-pretty';
import { SetupError } from './coded-error.js';

export type { Logger };

/** Lines of JSON for programs, or of text for people. */
export type LogFormat = 'json' | 'text';

// eslint-disable-next-line no-control-regex -- all but the tab and the end of a line
const UNPRINTABLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** Judges a setting; empty: null. Throws SetupError. */
export function parseLogFormat(name: string, value: string): LogFormat | null {
  if (value === '' || value === 'json' || value === 'text') return value || null;
  throw new SetupError(`${name} is "${value}"; give "text" for people or "json" for programs`);
}

/** On standard error, so that standard output stays free for what a program answers; without a format, as whoever looks there can read it. */
export function createLogger(
  name: string,
  level: string,
  format: LogFormat | null = null,
  destination: DestinationStream = pino.destination(2),
): Logger {
  const isText = (format ?? (process.stderr.isTTY ? 'text' : 'json')) === 'text';
  const options = {
    name,
    level,
    redact: ['token', 'password', 'credential', 'authorization', '*.token', '*.password'],
  };
  if (!isText) return pino(options, destination);
  // Loaded where somebody reads along: services need not wait for it.
  const makePretty = createRequire(import.meta.url)('pino-pretty') as typeof PinoPretty;
  const pretty = makePretty({
    messageFormat: (line, key) => printable(String(line[key])),
    destination,
    sync: true,
    colorize: process.stderr.isTTY,
    ignore: 'pid,hostname',
    translateTime: "UTC:yyyy-mm-dd'T'HH:MM:ss.l'Z'",
    singleLine: true,
  });
  const err = (error: Error) => {
    const { message, stack, ...rest } = pino.stdSerializers.err(error);
    return { ...rest, message: printable(message), stack: printable(stack) };
  };
  return pino({ ...options, serializers: { err } }, pretty);
}

/** What strangers have said stands in logs, too, and is to steer no terminal, nor to hide a line from journalctl. */
function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) =>
    JSON.stringify(character)
      .slice(1, -1)
      .replace(/^[^\\].*$/, '?'),
  );
}

export const silentLogger: Logger = pino({ level: 'silent' });
